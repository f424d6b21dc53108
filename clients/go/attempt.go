package foliot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Task runs a job. Its context ends when the attempt must stop: at its time limit, after a cancel, or when the worker
// stops. The result is encoded as JSON.
type Task func(ctx context.Context, run *Run) (result any, err error)

// Run is what a task knows of its run.
type Run struct {
	ID      string
	Task    string
	Attempt int
	// Upstream has the results of earlier steps of the workflow, by step.
	Upstream map[string]json.RawMessage

	payload json.RawMessage
	attempt *attempt
}

// Payload decodes the payload of the job.
func (r *Run) Payload(into any) error {
	if err := json.Unmarshal(r.payload, into); err != nil {
		return fmt.Errorf("%w: payload: %w", ErrFail, err)
	}
	return nil
}

// Write appends to the output of the attempt.
func (r *Run) Write(text []byte) (int, error) { return r.attempt.write(text) }

// Progress reports progress, from 0 to 1.
func (r *Run) Progress(share float64, message string) {
	r.attempt.mutex.Lock()
	defer r.attempt.mutex.Unlock()
	r.attempt.progress = &progress{r.ID, r.attempt.claim.Token, r.Attempt, max(0, min(share, 1)), message}
}

// ErrFail fails the job without another attempt, and ErrSkip ends a job with nothing to do. Wrap them.
var (
	ErrFail = errors.New("failed")
	ErrSkip = errors.New("skipped")
)

// Snooze puts the job off, without using up an attempt.
type Snooze struct{ Delay time.Duration }

func (s Snooze) Error() string { return fmt.Sprintf("put off for %s", s.Delay) }

// stopped is the cause of the end of an attempt's context.
type stopped struct{ ending, reason, message string }

func (s *stopped) Error() string { return s.ending }

type attempt struct {
	claim    claimed
	options  map[string]json.RawMessage
	settings settings
	stop     context.CancelCauseFunc

	mutex    sync.Mutex
	output   []byte
	sent     int
	progress *progress
}

func (a *attempt) write(text []byte) (int, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	left := max(0, a.settings.OutputMaxBytes-len(a.output))
	a.output = append(a.output, text[:min(left, len(text))]...)
	return len(text), nil
}

// unsent returns new output and progress.
func (a *attempt) unsent() ([]part, *progress) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var parts []part
	for a.sent < len(a.output) {
		chunk := a.output[a.sent:min(a.sent+65536, len(a.output))]
		parts = append(parts, part{a.claim.RunID, a.claim.Token, a.sent, append([]byte(nil), chunk...)})
		a.sent += len(chunk)
	}
	made := a.progress
	a.progress = nil
	return parts, made
}

func (a *attempt) timeLimit() time.Duration {
	seconds := a.settings.TimeoutSeconds
	if text, found := a.options["timeout_seconds"]; found {
		_ = json.Unmarshal(text, &seconds)
	}
	return time.Duration(min(seconds, 1e9) * float64(time.Second))
}

// run returns nil if the run belongs to somebody else now.
func (a *attempt) run(ctx context.Context, work func(context.Context) (any, error)) *ended {
	timer := time.AfterFunc(a.timeLimit(), func() { a.stop(&stopped{ending: "timeout"}) })
	defer timer.Stop()
	returned := make(chan ended, 1)
	go func() { returned <- a.called(ctx, work) }()
	select {
	case outcome := <-returned:
		// A success that comes in time stands.
		if ctx.Err() == nil || outcome.Ending == "succeeded" {
			return a.complete(outcome)
		}
	case <-ctx.Done():
	}
	return a.ofStop(context.Cause(ctx))
}

func (a *attempt) called(ctx context.Context, work func(context.Context) (any, error)) (outcome ended) {
	defer func() {
		if panicked := recover(); panicked != nil {
			failure := AttemptError{"panic", fmt.Sprint(panicked), string(debug.Stack())}
			outcome = ended{Ending: "failed", Error: &failure}
		}
	}()
	result, err := work(ctx)
	if err != nil {
		return failure(err)
	}
	text, err := json.Marshal(result)
	if err != nil {
		return failure(fmt.Errorf("%w: the result: %w", ErrFail, err))
	}
	if len(text) > a.settings.ResultMaxBytes {
		message := fmt.Sprintf("the result has more than %d bytes; store it elsewhere", a.settings.ResultMaxBytes)
		return ended{Ending: "failed", Error: &AttemptError{Kind: "ResultTooLarge", Message: message}}
	}
	return ended{Ending: "succeeded", Result: text}
}

func failure(err error) ended {
	said := &AttemptError{Kind: fmt.Sprintf("%T", err), Message: err.Error()}
	var snooze Snooze
	no := false
	switch {
	case errors.As(err, &snooze):
		seconds := snooze.Delay.Seconds()
		return ended{Ending: "snoozed", DelaySeconds: &seconds}
	case errors.Is(err, ErrSkip):
		return ended{Ending: "skipped", Error: said}
	case errors.Is(err, ErrFail):
		return ended{Ending: "failed", Error: said, IsRetryable: &no}
	}
	return ended{Ending: "failed", Error: said}
}

func (a *attempt) complete(outcome ended) *ended {
	outcome.RunID, outcome.Token = a.claim.RunID, a.claim.Token
	outcome.Attempt, outcome.Lost, outcome.Options = a.claim.Attempt, a.claim.Lost, a.options
	a.mutex.Lock()
	defer a.mutex.Unlock()
	outcome.Output = a.output
	return &outcome
}

func (a *attempt) ofStop(cause error) *ended {
	var why *stopped
	if !errors.As(cause, &why) {
		why = &stopped{ending: "released"}
	}
	switch why.ending {
	case "lost":
		return nil
	case "timeout":
		message := fmt.Sprintf("ran longer than its %s", a.timeLimit())
		return a.complete(ended{Ending: "timeout", Error: &AttemptError{Kind: "Timeout", Message: message}})
	case "cancelled":
		said := &AttemptError{Kind: "Cancelled", Message: why.message}
		return a.complete(ended{Ending: "cancelled", Reason: why.reason, Error: said})
	}
	return a.complete(ended{Ending: "released"})
}
