//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd

package main

import "os"

func widthOf(*os.File) int { return usualWidth }
