package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show which leasenode this is",
		Example: `  leasenode version -o json`,
		Args:    noArguments,
		RunE: a.action(func(context.Context, []string) error {
			v := buildVersion()
			return a.show(v, func(w io.Writer) {
				fmt.Fprintln(w, v.text())
			})
		}),
	}
}

func (v versionJSON) text() string {
	return fmt.Sprintf("leasenode %s (revision %s, %s)", v.Version, orDash(v.Revision), v.Go)
}

// buildVersion is what the Go linker noted in this program.
func buildVersion() versionJSON {
	v := versionJSON{Version: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version, v.Go = info.Main.Version, info.GoVersion
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}
