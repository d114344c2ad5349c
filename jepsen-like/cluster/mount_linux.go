package cluster

import "syscall"

// mountOptions leave a node some room beside what it wants to be free.
const mountOptions = "size=160m"

// mount puts a small disk in memory at dir. It takes root.
func mount(dir string) error { return syscall.Mount("tmpfs", dir, "tmpfs", 0, mountOptions) }

func unmount(dir string) error { return syscall.Unmount(dir, 0) }
