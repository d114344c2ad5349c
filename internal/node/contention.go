package node

import (
	"net/http"
	"runtime"
	"sync"
)

const (
	// blockRate is one sample for so many nanoseconds that goroutines wait, mutexRate one
	// for so many that had to wait for a mutex.
	blockRate = 10_000
	mutexRate = 10
)

// contention has goroutines that wait for each other be sampled while somebody asks for
// it (with ?seconds=N), since that costs something.
type contention struct {
	mu    sync.Mutex
	asked int
}

// during returns handle, with sampling on while it runs.
func (c *contention) during(handle http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.change(1)
		defer c.change(-1)
		handle.ServeHTTP(w, r)
	})
}

func (c *contention) change(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked += by
	if c.asked > 0 {
		runtime.SetBlockProfileRate(blockRate)
		runtime.SetMutexProfileFraction(mutexRate)
		return
	}
	runtime.SetBlockProfileRate(0)
	runtime.SetMutexProfileFraction(0)
}
