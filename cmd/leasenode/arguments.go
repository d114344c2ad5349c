package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// arguments is what a command takes beside its flags, with the errors in words that a
// user of the command knows.
type arguments struct {
	what     string // one of them: "KEY"
	min, max int    // how many; a max of 0 is no limit
}

// oneKey and noArguments are what most commands take.
func oneKey(cmd *cobra.Command, args []string) error {
	return arguments{what: "KEY", min: 1, max: 1}.check(cmd, args)
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q takes no arguments, and was given %q", cmd.CommandPath(), args[0])
}

// check implements [cobra.PositionalArgs].
func (a arguments) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) < a.min:
		return fmt.Errorf("%q needs a %s", cmd.CommandPath(), a.what)
	case a.max > 0 && len(args) > a.max:
		return fmt.Errorf("%q takes one %s, and was given %d", cmd.CommandPath(), a.what, len(args))
	default:
		return nil
	}
}

// plainly returns what cobra says about a command line in one line, with the commands
// that may have been meant, and with flags as they are typed.
func plainly(err error) error {
	text := err.Error()
	if names, ok := strings.CutPrefix(text, "required flag(s) "); ok {
		names = strings.ReplaceAll(strings.TrimSuffix(names, " not set"), `"`, "")
		return errors.New("needs --" + strings.ReplaceAll(names, ", ", " and --"))
	}
	text, meant, found := strings.Cut(text, "\n\nDid you mean this?\n")
	if !found {
		return err
	}
	return orMeant(errors.New(text), strings.Fields(meant))
}
