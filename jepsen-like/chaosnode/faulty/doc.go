// Package faulty has parts for a node that are worse than those of production: a clock
// that runs wrong and a disk that fails when told so, which a right node has to survive,
// and parts that break a promise, which a checker has to catch.
//
// Everything here stands at a seam of [node.Parts]. Nothing of the product knows of it.
//
// Start reading at [Modes], the table of the broken promises.
package faulty
