package node

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// mutexes is one in how many waits for a mutex is sampled, 0 for none.
func mutexes() int { return runtime.SetMutexProfileFraction(-1) }

// Waits are sampled while anybody asks, and only then.
func TestContentionIsSampledWhileSomebodyAsks(t *testing.T) {
	var c contention
	ask := func(during func()) {
		handler := c.during(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { during() }))
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	ask(func() {
		ask(func() {})
		if mutexes() == 0 {
			t.Error("it ends with the first who asked, while another does")
		}
		ping := make(chan struct{})
		go func() { ping <- struct{}{} }()
		for range 1000 { // of which some are sampled
			go func() { ping <- struct{}{} }()
			<-ping
		}
		<-ping
	})
	if n := mutexes(); n != 0 {
		t.Errorf("one in %d is sampled afterwards", n)
	}
	handler := httpHandler(prometheus.NewRegistry(), func() bool { return true })
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/debug/pprof/block?debug=1", nil))
	if !strings.Contains(answer.Body.String(), "TestContentionIsSampledWhileSomebodyAsks") {
		t.Errorf("no wait for a channel was sampled:\n%s", answer.Body)
	}
}

// TestProfilesOfContentionAreTakenWhileTheyAreAsked asks a node for a second of each.
func TestProfilesOfContentionAreTakenWhileTheyAreAsked(t *testing.T) {
	handler := httpHandler(prometheus.NewRegistry(), func() bool { return true })
	for _, name := range []string{"block", "mutex"} {
		served := make(chan int)
		go func() {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/debug/pprof/"+name+"?seconds=1", nil))
			served <- answer.Code
		}()
		sampled := false
		for code := 0; code == 0; {
			select {
			case code = <-served:
				if code != http.StatusOK || !sampled {
					t.Errorf("%s: answered with %d, sampled: %v", name, code, sampled)
				}
			default:
				sampled = sampled || mutexes() > 0
				runtime.Gosched()
			}
		}
	}
}
