package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const envPrefix = "LEASENODE_"

// fromEnvironment reports whether a flag of cmd can come from the environment. Those
// can that are the same for all that is done at a place: how to reach the cluster and how
// to print, and everything about a server. Those cannot that say which lease is meant and
// what to do with it: what runs under "leasenode lock" has LEASENODE_KEY and
// LEASENODE_EPOCH in its environment, which are about the lease of lock alone.
func fromEnvironment(cmd *cobra.Command, flag string) bool {
	switch flag {
	case "endpoints", "timeout", "output":
		return true
	case "help", "version":
		return false
	}
	for ; cmd != nil; cmd = cmd.Parent() {
		if name := cmd.Name(); name == "serve" || name == "dev" {
			return true
		}
	}
	return false
}

// envName returns the environment variable that stands for a flag.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// lookup finds name in env, where the last of several counts. A variable that is
// set to nothing is taken as not set.
func lookup(env []string, name string) (value string, ok bool) {
	for _, pair := range slices.Backward(env) {
		if n, v, _ := strings.Cut(pair, "="); n == name {
			return v, v != ""
		}
	}
	return "", false
}

// describeFlags names the environment variable of each flag that has one in its help, and
// tells the shell what the flag can be.
func describeFlags(cmd *cobra.Command) {
	describe := func(f *pflag.Flag) {
		if fromEnvironment(cmd, f.Name) {
			f.Usage += " [$" + envName(f.Name) + "]"
		}
		complete := cobra.NoFileCompletions
		if c, ok := f.Value.(*choice); ok {
			complete = cobra.FixedCompletions(c.words, cobra.ShellCompDirectiveNoFileComp)
		}
		if f.Name == "data-dir" {
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		}
		if f.Name == "op" {
			complete = completeOps
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
			panic(err) // the flag is described twice: a mistake in this program
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(describe)
	cmd.PersistentFlags().VisitAll(describe)
	for _, sub := range cmd.Commands() {
		describeFlags(sub)
	}
}

// applyEnvironment sets each flag of cmd that was not given, and can come from the
// environment, from its variable, if there is one.
func applyEnvironment(cmd *cobra.Command, env []string) error {
	var fault error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value, ok := lookup(env, envName(f.Name))
		if !ok || f.Changed || fault != nil || !fromEnvironment(cmd, f.Name) {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			fault = usagef("the environment variable %s=%s cannot be used for --%s: %v", envName(f.Name), value, f.Name, rootCause(err))
		}
	})
	return fault
}

// rootCause strips what pflag says about the flag and keeps what is wrong with
// the value.
func rootCause(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok || inner.Unwrap() == nil {
			return err
		}
		err = inner.Unwrap()
	}
}

// choice is a flag that takes one of a few words; the first is its default.
type choice struct {
	value string
	words []string
}

func newChoice(words ...string) *choice { return &choice{value: words[0], words: words} }

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.words, "|") }

// Set implements [pflag.Value].
func (c *choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("%q must be one of: %s", s, strings.Join(c.words, ", "))
	}
	c.value = s
	return nil
}

// attributes is a flag that can be repeated and collects name=value pairs.
type attributes map[string]string

func (a attributes) String() string { return attributesText(a) }
func (a attributes) Type() string   { return "name=value" }

// Set implements [pflag.Value].
func (a attributes) Set(pair string) error {
	name, value, ok := strings.Cut(pair, "=")
	if !ok || name == "" {
		return fmt.Errorf("%q is not of the form name=value", pair)
	}
	if _, ok := a[name]; ok {
		return fmt.Errorf("%q is given twice", name)
	}
	a[name] = value
	return nil
}
