package foliot

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	defaultSlots = 10
	outcomesMax  = 1000
	logEvery     = 500 * time.Millisecond
)

// TaskOptions are the values of jobs that do not set them.
type TaskOptions struct {
	Queue          string
	Retries        *int
	TimeoutSeconds float64
	Description    string
	// Schema is the JSON Schema of the payload.
	Schema json.RawMessage
}

// Worker claims runs, calls their tasks and stores how they ended.
type Worker struct {
	Address Address
	// Queues are the slots of each queue. Default: 10 in each queue that a task names.
	Queues map[string]int
	Labels map[string]string
	Name   string
	// Grace is the time that running attempts get when the worker stops. Default: 30 s.
	Grace time.Duration
	// Log gets trouble that passes. Default: the standard logger.
	Log func(message string)

	tasks      map[string]knownTask
	connection *connection
	settings   settings
	stop       context.CancelFunc

	mutex        sync.Mutex
	id           string
	trustedUntil time.Time
	running      map[key]*attempt
	held         map[key]claimed
	finished     []finishedAttempt
	ownsUnheld   bool
	isDraining   bool
	refusal      error

	slotFreed, outcomeAdded, beatSoon signal
}

type knownTask struct {
	task    Task
	options TaskOptions
}

type finishedAttempt struct {
	outcome ended
	claim   claimed
}

// signal wakes one waiter. One that nobody waits for is kept.
type signal chan struct{}

func (s signal) set() {
	select {
	case s <- struct{}{}:
	default:
	}
}

func (s signal) wait(limit time.Duration) {
	select {
	case <-s:
	case <-time.After(limit):
	}
}

// Task adds a task.
func (w *Worker) Task(name string, task Task, options ...TaskOptions) {
	known := knownTask{task: task}
	if len(options) > 0 {
		known.options = options[0]
	}
	if known.options.Queue == "" {
		known.options.Queue = "default"
	}
	if w.tasks == nil {
		w.tasks = map[string]knownTask{}
	}
	w.tasks[name] = known
}

// Run works until the context ends or the worker is drained. It returns an error if the server refuses the token.
func (w *Worker) Run(ctx context.Context) error {
	w.connection = connect(w.Address)
	w.running, w.held = map[key]*attempt{}, map[key]claimed{}
	w.slotFreed, w.outcomeAdded, w.beatSoon = make(signal, 1), make(signal, 1), make(signal, 1)
	if w.Queues == nil {
		w.Queues = map[string]int{}
		for _, known := range w.tasks {
			w.Queues[known.options.Queue] = defaultSlots
		}
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	w.stop = stop
	err := w.patiently(working, func() error {
		return w.connection.send(working, "GET", "/v1/worker/settings", nil, &w.settings, nil, 0)
	})
	if err == nil {
		err = w.register(working)
	}
	if err != nil {
		return err
	}
	left, leave := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	for _, turn := range []func(context.Context){w.beat, w.store, w.writeLogs} {
		loops.Add(1)
		go func() {
			defer loops.Done()
			for left.Err() == nil {
				turn(left)
			}
		}()
	}
	w.work(working)
	w.finish()
	for w.unstored() && w.refused() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	leave()
	w.outcomeAdded.set()
	w.beatSoon.set()
	loops.Wait()
	if err := w.refused(); err != nil {
		return err
	}
	if err := w.post(context.Background(), "leave", map[string]any{}, nil); err != nil {
		w.trouble(err)
	}
	return nil
}

// --- registration

func (w *Worker) register(ctx context.Context) error {
	tasks := map[string]offer{}
	for name, known := range w.tasks {
		tasks[name] = offer{known.options.Queue, known.options.Description, known.options.Schema}
	}
	name := w.Name
	if name == "" {
		host, _ := os.Hostname()
		name = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	id, askedAt := newID(), time.Now()
	body := map[string]any{"worker_id": id, "name": name, "queues": w.Queues, "tasks": tasks}
	if w.Labels != nil {
		body["labels"] = w.Labels
	}
	err := w.patiently(ctx, func() error {
		return w.connection.send(ctx, "POST", "/v1/worker/register", body, nil, nil, 0)
	})
	if err != nil {
		return err
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.id = id
	w.trustFrom(askedAt)
	return nil
}

func (w *Worker) trustFrom(askedAt time.Time) {
	lease := w.settings.LeaseSeconds
	w.trustedUntil = askedAt.Add(seconds(lease - min(2, lease/5)))
}

// loseLease stops everything: others may be running the same jobs now.
func (w *Worker) loseLease(ctx context.Context) {
	w.mutex.Lock()
	for _, one := range w.running {
		one.stop(&stopped{ending: "lost"})
	}
	clear(w.held)
	w.finished = nil
	w.mutex.Unlock()
	if err := w.register(ctx); err != nil {
		w.trouble(err)
	}
}

// --- the loops

func (w *Worker) work(ctx context.Context) {
	for ctx.Err() == nil && !w.draining() {
		slots, free := w.free()
		var err error
		switch {
		case free == 0:
			select {
			case <-w.slotFreed:
			case <-ctx.Done():
			}
		default:
			var found bool
			if found, err = w.claim(ctx, slots); err == nil && !found {
				err = w.wait(ctx, slots)
			}
		}
		if err != nil && ctx.Err() == nil {
			w.trouble(err)
			_ = pause(ctx, 500*time.Millisecond)
		}
	}
}

func (w *Worker) claim(ctx context.Context, slots map[string]int) (bool, error) {
	w.mutex.Lock()
	id, body := w.id, map[string]any{"slots": slots, "tasks": w.names()}
	if w.ownsUnheld {
		body["held"] = w.keys()
	}
	w.mutex.Unlock()
	var answer struct {
		Runs []claimed `json:"runs"`
	}
	// Not with the context of the worker: the answer tells of runs that it owns.
	err := w.post(context.WithoutCancel(ctx), "claim", body, &answer)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if err != nil {
		// The server may have claimed runs that this worker does not know of.
		w.ownsUnheld = true
		return false, err
	}
	w.ownsUnheld = w.ownsUnheld && len(answer.Runs) > 0
	if id != w.id {
		// The lease was lost meanwhile: the server gives these runs to others.
		return false, nil
	}
	for _, one := range answer.Runs {
		w.start(one)
	}
	return len(answer.Runs) > 0, nil
}

func (w *Worker) wait(ctx context.Context, slots map[string]int) error {
	length := w.settings.WaitSeconds
	for _, free := range slots {
		if free == 0 {
			length = 1
		}
	}
	var news struct {
		Beat bool `json:"beat"`
	}
	w.mutex.Lock()
	body := map[string]any{"worker_id": w.id, "slots": slots, "tasks": w.names(), "seconds": length}
	w.mutex.Unlock()
	err := w.connection.send(ctx, "POST", "/v1/worker/wait", body, &news, nil, seconds(length))
	if news.Beat {
		w.beatSoon.set()
	}
	return err
}

func (w *Worker) beat(ctx context.Context) {
	askedAt := time.Now()
	w.mutex.Lock()
	id, held := w.id, w.keys()
	w.mutex.Unlock()
	var answer beat
	if err := w.post(ctx, "beat", map[string]any{"held": held}, &answer); err != nil {
		if ctx.Err() != nil {
			return
		}
		w.trouble(err)
		w.mutex.Lock()
		isLost := id == w.id && time.Now().After(w.trustedUntil) && w.refusal == nil
		w.mutex.Unlock()
		if isLost {
			w.loseLease(ctx)
		}
		w.beatSoon.wait(200 * time.Millisecond)
		return
	}
	if !answer.IsRenewed {
		w.loseLease(ctx)
		return
	}
	w.mutex.Lock()
	w.trustFrom(askedAt)
	for _, one := range answer.End {
		if running, found := w.running[key{one.RunID, one.Token}]; found {
			why := &stopped{"cancelled", one.Reason, one.Message}
			if one.IsLost {
				why = &stopped{ending: "lost"}
			}
			running.stop(why)
		}
	}
	w.ownsUnheld = w.ownsUnheld || answer.OwnsUnheld
	if answer.IsDraining && !w.isDraining {
		w.isDraining = true
		w.stop()
	}
	w.mutex.Unlock()
	w.beatSoon.wait(seconds(w.settings.BeatSeconds))
}

func (w *Worker) store(ctx context.Context) {
	w.mutex.Lock()
	batch := slices.Clone(w.finished[:min(len(w.finished), outcomesMax)])
	w.mutex.Unlock()
	if len(batch) == 0 {
		select {
		case <-w.outcomeAdded:
		case <-ctx.Done():
		}
		return
	}
	outcomes, concernsOthers, freesLimit := make([]ended, len(batch)), false, false
	for number, one := range batch {
		outcomes[number] = one.outcome
		concernsOthers = concernsOthers || one.claim.ConcernsOthers
		_, isLimited := one.claim.Options["concurrency"]
		freesLimit = freesLimit || isLimited
	}
	body := map[string]any{"ended": outcomes, "concerns_others": concernsOthers, "frees_limit": freesLimit}
	if err := w.post(ctx, "outcomes", body, nil); err != nil {
		w.trouble(err)
		_ = pause(ctx, 200*time.Millisecond)
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if len(w.finished) < len(batch) {
		// The lease was lost meanwhile.
		return
	}
	w.finished = w.finished[len(batch):]
	for _, one := range batch {
		delete(w.held, one.claim.key())
	}
}

// writeLogs sends new output and progress of running attempts. A part may get lost: the whole output is stored with the
// outcome.
func (w *Worker) writeLogs(ctx context.Context) {
	if pause(ctx, logEvery) != nil {
		return
	}
	w.mutex.Lock()
	running := slices.Collect(maps.Values(w.running))
	w.mutex.Unlock()
	parts, made := []part{}, []progress{}
	for _, one := range running {
		new, share := one.unsent()
		parts = append(parts, new...)
		if share != nil {
			made = append(made, *share)
		}
	}
	if len(parts)+len(made) > 0 {
		if err := w.post(ctx, "logs", map[string]any{"parts": parts, "progress": made}, nil); err != nil {
			w.trouble(err)
		}
	}
}

// finish gives running attempts their grace period. A worker that is drained waits for them however long they take.
func (w *Worker) finish() {
	grace := w.Grace
	if grace == 0 {
		grace = 30 * time.Second
	}
	for giveUpAt := time.Now().Add(grace); w.isRunning(); w.slotFreed.wait(100 * time.Millisecond) {
		if w.refused() != nil || (!w.draining() && time.Now().After(giveUpAt)) {
			w.mutex.Lock()
			for _, one := range w.running {
				one.stop(&stopped{ending: "released"})
			}
			w.mutex.Unlock()
		}
	}
}

// --- attempts

// start is called with the mutex locked.
func (w *Worker) start(claim claimed) {
	known, isKnown := w.tasks[claim.Task]
	ctx, stop := context.WithCancelCause(context.Background())
	one := &attempt{claim: claim, options: w.optionsOf(claim, known.options), settings: w.settings, stop: stop}
	w.running[claim.key()], w.held[claim.key()] = one, claim
	go func() {
		defer stop(nil)
		outcome := one.run(ctx, func(ctx context.Context) (any, error) {
			switch {
			case claim.IsDisabled:
				return nil, fmt.Errorf("%w: the task is disabled", ErrFail)
			case !isKnown:
				return nil, fmt.Errorf("this worker knows no task %s", claim.Task)
			}
			return w.call(ctx, known.task, one)
		})
		w.mutex.Lock()
		defer w.mutex.Unlock()
		delete(w.running, claim.key())
		if _, isHeld := w.held[claim.key()]; isHeld && outcome != nil {
			w.finished = append(w.finished, finishedAttempt{*outcome, claim})
		} else {
			delete(w.held, claim.key())
		}
		w.outcomeAdded.set()
		w.slotFreed.set()
	}()
}

func (w *Worker) call(ctx context.Context, task Task, one *attempt) (any, error) {
	claim := one.claim
	run := &Run{ID: claim.RunID, Task: claim.Task, Attempt: claim.Attempt, payload: claim.Payload, attempt: one}
	if len(run.payload) == 0 {
		run.payload = json.RawMessage("{}")
	}
	if claim.HasUpstream {
		var found upstream
		body := map[string]any{"attempts": []key{claim.key()}}
		err := w.patiently(ctx, func() error { return w.post(ctx, "upstream", body, &found) })
		if err != nil {
			return nil, err
		}
		run.Upstream = map[string]json.RawMessage{}
		for _, before := range found.Runs {
			for _, result := range before.Results {
				if result.State == "succeeded" {
					run.Upstream[result.Key] = result.Result
				}
			}
		}
		if run.payload, err = resolved(run.payload, run.Upstream); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFail, err)
		}
	}
	return task(ctx, run)
}

func (w *Worker) optionsOf(claim claimed, own TaskOptions) map[string]json.RawMessage {
	retries, limit := w.settings.Retries, w.settings.TimeoutSeconds
	if own.Retries != nil {
		retries = *own.Retries
	}
	if own.TimeoutSeconds > 0 {
		limit = own.TimeoutSeconds
	}
	options := map[string]json.RawMessage{"retries": encoded(retries), "timeout_seconds": encoded(limit)}
	maps.Copy(options, claim.Options)
	return options
}

// --- requests and state

func (w *Worker) post(ctx context.Context, path string, body map[string]any, answer any) error {
	w.mutex.Lock()
	body["worker_id"] = w.id
	w.mutex.Unlock()
	return w.connection.send(ctx, "POST", "/v1/worker/"+path, body, answer, nil, 0)
}

func (w *Worker) patiently(ctx context.Context, ask func() error) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := ask()
		if !errors.Is(err, ErrUnavailable) {
			return err
		}
		w.trouble(err)
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

func (w *Worker) trouble(err error) {
	var refusal *Error
	if errors.As(err, &refusal) && (refusal.Status == 401 || refusal.Status == 403) {
		w.mutex.Lock()
		w.refusal = err
		w.mutex.Unlock()
		w.stop()
		return
	}
	if w.Log != nil {
		w.Log(err.Error())
		return
	}
	log.Printf("foliot worker: %v", err)
}

func (w *Worker) free() (map[string]int, int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	slots, total := maps.Clone(w.Queues), 0
	for _, one := range w.running {
		slots[one.claim.Queue]--
	}
	for queue, free := range slots {
		slots[queue] = max(free, 0)
		total += slots[queue]
	}
	return slots, total
}

func (w *Worker) names() []string { return slices.Sorted(maps.Keys(w.tasks)) }

// keys is called with the mutex locked.
func (w *Worker) keys() []key {
	held := make([]key, 0, len(w.held))
	for one := range w.held {
		held = append(held, one)
	}
	return held
}

func (w *Worker) draining() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.isDraining
}

func (w *Worker) isRunning() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.running) > 0
}

func (w *Worker) unstored() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.finished) > 0
}

func (w *Worker) refused() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.refusal
}

func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

func seconds(number float64) time.Duration { return time.Duration(number * float64(time.Second)) }

func encoded(value any) json.RawMessage {
	text, _ := json.Marshal(value)
	return text
}
