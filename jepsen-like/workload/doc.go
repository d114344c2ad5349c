// Package workload is what runs against a cluster while things are done to it: clients
// that ask for anything at any time, and holders that own keys and write to a resource.
//
//   - [Clients]: each has one operation out at a time, drawn from a seed, and tells what
//     it asked and what it was told. What an operation asks for rests on the seed and,
//     for the epoch and the retries, on the answers before it.
//   - [Hold]: a holder, by the holder library: it acquires, samples what it believes,
//     writes to the fenced resource of its key, and now and then releases or forgets.
//     It runs in a process of its own, to be stopped, or in a simulation.
//   - [StartWatchers]: watchers that follow all keys, one of them cut off and moved again
//     and again, and take down what they are told.
//   - [Probe]: whether each node serves, and how soon.
//   - [Direct]: a store that is one node, and makes exactly one try.
//   - [Writer], [Scan] and [Ledger]: the lines in which a holder process tells what it
//     believed and wrote. Any program that writes them can be judged.
//   - [Resource]: what a fenced resource does; [FileResource] is one, of files.
//
// What a holder asks the store for is not taken down: it uses the library as any replica
// does, with nothing in between. What was granted to it shows in the records and in the
// history that the store has in the end, and in what holders believe and write.
//
// It knows nothing of how a cluster works inside, and judges nothing: it hands over
// what happened to a recorder.
package workload
