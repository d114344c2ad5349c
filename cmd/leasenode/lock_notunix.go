//go:build !unix

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/holder"
)

// executable refuses: this system has no process groups to end as a whole.
func executable(string) error {
	return fmt.Errorf("lock is not available on this system: %w", errors.ErrUnsupported)
}

// What comes after executable is never called here.

func catchSignals() (chan os.Signal, func()) { return nil, func() {} }

func signalCode(os.Signal) int { return exitFailed }

func (r *lockRun) guarded(*holder.Lease, chan os.Signal) error { return errors.ErrUnsupported }

func (a *app) guardCommand() *cobra.Command { return &cobra.Command{Use: "guard", Hidden: true} }
