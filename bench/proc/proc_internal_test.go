package proc

import (
	"testing"
	"time"
)

func TestParseCPU(t *testing.T) {
	const stat = "42 (a ) name) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 5 0 100"
	cpu, err := parseCPU(stat)
	if err != nil || cpu != 2*time.Second {
		t.Errorf("%v, %v", cpu, err)
	}
	for _, bad := range []string{"", "42 (x) S 1 2", "42 (x) S 1 2 3 4 5 6 7 8 9 10 a b c"} {
		if cpu, err := parseCPU(bad); err == nil {
			t.Errorf("%q is %v", bad, cpu)
		}
	}
}

func TestParseField(t *testing.T) {
	const io = "rchar: 1\nwrite_bytes: 8192\ncancelled_write_bytes: 4096\nempty:\n"
	if n, err := parseField(io, "write_bytes:"); err != nil || n != 8192 {
		t.Errorf("%v, %v", n, err)
	}
	for _, name := range []string{"read_bytes:", "empty:"} {
		if n, err := parseField(io, name); err == nil {
			t.Errorf("%s is %d", name, n)
		}
	}
}
