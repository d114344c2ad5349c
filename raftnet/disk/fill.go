package disk

import (
	"crypto/rand"
	"io"
	"os"
)

// fill writes what no file system can make smaller.
func fill(f *os.File, size int64) error {
	if _, err := io.CopyN(f, rand.Reader, size); err != nil {
		return err
	}
	return f.Sync()
}
