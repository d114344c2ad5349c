package node

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Goroutines that wait are sampled while somebody asks, and only then.
func TestContentionIsSampledWhileSomebodyAsks(t *testing.T) {
	handler := httpHandler(prometheus.NewRegistry(), func() bool { return true })
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for ping := make(chan struct{}); ; {
			go func() { ping <- struct{}{} }()
			select {
			case <-ping:
			case <-stop:
				<-ping
				return
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for _, profile := range []string{"block", "mutex"} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/debug/pprof/"+profile+"?debug=0&seconds=1", nil))
		if answer.Code != http.StatusOK || answer.Body.Len() == 0 {
			t.Errorf("%s: %d, %d bytes", profile, answer.Code, answer.Body.Len())
		}
		if rate := runtime.SetMutexProfileFraction(-1); rate != 0 {
			t.Errorf("%s: one in %d is sampled afterwards", profile, rate)
		}
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/debug/pprof/block?debug=1", nil))
	if !strings.Contains(answer.Body.String(), "chan") {
		t.Errorf("nothing was sampled:\n%s", answer.Body)
	}
}
