// Package etcdmember is one member of an etcd cluster, through etcd's embed package,
// so that the benchmark needs no etcd installed: its binary runs itself again, with
// arguments made by [Member.Args], and [Run] is what that process does.
//
// Everything but names, addresses and the folder is as etcd has it by default: fsync is
// on.
package etcdmember

import (
	"flag"
	"fmt"
	"net/url"
	"strings"

	"go.etcd.io/etcd/api/v3/version"
	"go.etcd.io/etcd/server/v3/embed"
)

// Command is the first argument of a process that is to be a member.
const Command = "etcd-member"

// Version is etcd's.
func Version() string { return version.Version }

// Member is what a member is told.
type Member struct {
	Name    string
	DataDir string
	// ClientAddr and PeerAddr are where it listens: host:port.
	ClientAddr, PeerAddr string
	// Cluster lists all members: name=http://host:port, separated by commas.
	Cluster string
}

// Args returns the arguments of the process.
func (m Member) Args() []string {
	return []string{
		Command, "--name", m.Name, "--data-dir", m.DataDir,
		"--client-addr", m.ClientAddr, "--peer-addr", m.PeerAddr, "--cluster", m.Cluster,
	}
}

// IsMember reports whether a process with these arguments, without its own name, is to be a
// member.
func IsMember(args []string) bool { return len(args) > 0 && args[0] == Command }

// Run is a member until it fails: it returns with an error only. It is stopped by ending
// the process.
func Run(args []string) error {
	m, err := parse(args)
	if err != nil {
		return fmt.Errorf("run an etcd member: %w", err)
	}
	server, err := embed.StartEtcd(m.config())
	if err != nil {
		return fmt.Errorf("start etcd member %s: %w", m.Name, err)
	}
	defer server.Close()
	return fmt.Errorf("etcd member %s stopped: %w", m.Name, <-server.Err())
}

func parse(args []string) (Member, error) {
	var m Member
	flags := flag.NewFlagSet(Command, flag.ContinueOnError)
	flags.StringVar(&m.Name, "name", "", "the member's name")
	flags.StringVar(&m.DataDir, "data-dir", "", "its folder")
	flags.StringVar(&m.ClientAddr, "client-addr", "", "where it listens for clients, host:port")
	flags.StringVar(&m.PeerAddr, "peer-addr", "", "where it listens for other members, host:port")
	flags.StringVar(&m.Cluster, "cluster", "", "all members, name=http://host:port")
	if err := flags.Parse(args[1:]); err != nil {
		return Member{}, err
	}
	for name, value := range map[string]string{"name": m.Name, "data-dir": m.DataDir, "client-addr": m.ClientAddr, "peer-addr": m.PeerAddr, "cluster": m.Cluster} {
		if strings.TrimSpace(value) == "" {
			return Member{}, fmt.Errorf("--%s is empty", name)
		}
	}
	return m, nil
}

func (m Member) config() *embed.Config {
	config := embed.NewConfig()
	config.Name, config.Dir = m.Name, m.DataDir
	client, peer := url.URL{Scheme: "http", Host: m.ClientAddr}, url.URL{Scheme: "http", Host: m.PeerAddr}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = m.Cluster
	return config
}
