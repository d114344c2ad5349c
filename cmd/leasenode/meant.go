package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// onlyCommands is for a command that takes no arguments beside those of its own
// subcommands: what is none of them is told with those that may have been meant.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var meant []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && resembles(args[0], sub.Name()) {
			meant = append(meant, sub.Name())
		}
	}
	return orMeant(fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath()), meant)
}

// flagError returns what is wrong with a flag, and which may have been meant if there is
// none of that name. It is a [cobra.Command.SetFlagErrorFunc].
func flagError(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	typed := unknown.GetSpecifiedName()
	if shorthands := unknown.GetSpecifiedShortnames(); shorthands != "" {
		typed = shorthands // -owner is taken for -o -w -n -e -r
	}
	var meant []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && resembles(typed, f.Name) {
			meant = append(meant, "--"+f.Name)
		}
	})
	return orMeant(err, meant)
}

func orMeant(err error, names []string) error {
	if len(names) == 0 {
		return err
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return fmt.Errorf("%w; did you mean %s?", err, strings.Join(quoted, " or "))
}

// resembles reports whether typed may have been meant for name: it begins so, or at most
// two letters, and no more than half of them, are wrong.
func resembles(typed, name string) bool {
	wrong := distance(typed, name)
	return len(typed) > 1 && strings.HasPrefix(name, typed) || wrong <= 2 && 2*wrong <= len(typed)
}

// distance returns how many bytes have to be put in, left out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // of the first bytes of a, to each length of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, replaced)
		}
	}
	return row[len(b)]
}
