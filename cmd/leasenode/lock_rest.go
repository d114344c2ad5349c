//go:build unix

package main

import (
	"syscall"
	"time"
)

// killRest kills a process group, and whatever else has become this process's to wait
// for, and returns when nothing of it is left. It is for lock when its guard is gone.
func killRest(group int) {
	for ; ; time.Sleep(killPause) {
		_ = syscall.Kill(-group, syscall.SIGKILL)
		killChildren()
		var err error
		for pid := 1; pid > 0 && err == nil; { // until there is none to be had now, or at all
			pid, err = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		if err == syscall.ECHILD && groupGone(group) {
			return
		}
	}
}
