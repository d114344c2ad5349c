//go:build !unix

package main

import (
	"errors"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func standStill(*exec.Cmd) error   { return errors.ErrUnsupported }
func goOn(*exec.Cmd) error         { return nil }
func askToEnd(cmd *exec.Cmd) error { return cmd.Process.Kill() }
func killAll(cmd *exec.Cmd) error  { return cmd.Process.Kill() }
