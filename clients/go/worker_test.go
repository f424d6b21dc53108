package foliot_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	foliot "github.com/foliot/foliot/clients/go"
)

// These tests run against a real server: FOLIOT_URL and FOLIOT_TOKEN name it, and a token of the role worker.

var client = foliot.NewClient(foliot.Address{})

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

func shop(cancelled chan<- string) *foliot.Worker {
	worker := &foliot.Worker{Queues: map[string]int{"default": 20}, Labels: map[string]string{"language": "go"}}
	var tries, snoozes atomic.Int32
	no := 0
	worker.Task("add", func(_ context.Context, run *foliot.Run) (any, error) {
		var asked sum
		if err := run.Payload(&asked); err != nil {
			return nil, err
		}
		return asked.A + asked.B, nil
	})
	worker.Task("flaky", func(context.Context, *foliot.Run) (any, error) {
		if number := tries.Add(1); number < 3 {
			return nil, fmt.Errorf("try %d", number)
		}
		return 3, nil
	})
	worker.Task("hopeless", func(context.Context, *foliot.Run) (any, error) {
		return nil, fmt.Errorf("%w: no retry would help", foliot.ErrFail)
	})
	worker.Task("later", func(context.Context, *foliot.Run) (any, error) {
		if snoozes.Add(1) == 1 {
			return nil, foliot.Snooze{Delay: 100 * time.Millisecond}
		}
		return "done", nil
	})
	worker.Task("nothing", func(context.Context, *foliot.Run) (any, error) { return nil, foliot.ErrSkip })
	worker.Task("panics", func(context.Context, *foliot.Run) (any, error) { panic("oops") }, foliot.TaskOptions{Retries: &no})
	worker.Task("talk", func(_ context.Context, run *foliot.Run) (any, error) {
		run.Progress(0.5, "half")
		fmt.Fprintln(run, "hello")
		return nil, nil
	})
	worker.Task("slow", func(ctx context.Context, _ *foliot.Run) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, foliot.TaskOptions{Retries: &no})
	worker.Task("hold", func(ctx context.Context, run *foliot.Run) (any, error) {
		<-ctx.Done()
		cancelled <- run.ID
		return nil, ctx.Err()
	})
	return worker
}

func submit(t *testing.T, task string, payload any, fields map[string]any) string {
	t.Helper()
	job, err := client.Submit(t.Context(), foliot.Job{Task: task, Payload: payload, Fields: fields})
	if err != nil {
		t.Fatal(err)
	}
	return job.ID
}

func ended(t *testing.T, id string) foliot.Submitted {
	t.Helper()
	job, err := client.Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestWorker(t *testing.T) {
	cancelled := make(chan string, 10)
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- shop(cancelled).Run(ctx) }()
	// A job is refused until a worker has announced its task.
	for {
		_, err := client.Submit(t.Context(), foliot.Job{Task: "nothing"})
		var refusal *foliot.Error
		if err == nil {
			break
		}
		if !errors.As(err, &refusal) || refusal.Code != "unknown_task" {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}

	t.Run("many results", func(t *testing.T) {
		ids := make([]string, 50)
		for number := range ids {
			ids[number] = submit(t, "add", sum{1, number}, nil)
		}
		for number, id := range ids {
			var found int
			if err := client.Result(t.Context(), id, &found); err != nil || found != number+1 {
				t.Fatal(number, found, err)
			}
		}
	})
	t.Run("a retry", func(t *testing.T) {
		backoff := map[string]any{"kind": "fixed", "base_seconds": 0.01}
		job := ended(t, submit(t, "flaky", nil, map[string]any{"retries": 3, "backoff": backoff}))
		if job.Status != "completed" || job.Attempt != 3 {
			t.Fatal(job)
		}
	})
	t.Run("failures", func(t *testing.T) {
		for task, says := range map[string]string{"hopeless": "no retry would help", "panics": "oops"} {
			job := ended(t, submit(t, task, nil, nil))
			if job.Status != "failed" || job.Attempt != 1 || !strings.Contains(job.Error.Message, says) {
				t.Fatal(task, job, job.Error)
			}
		}
	})
	t.Run("put off, and nothing to do", func(t *testing.T) {
		for task, status := range map[string]string{"later": "completed", "nothing": "skipped"} {
			if job := ended(t, submit(t, task, nil, nil)); job.Status != status {
				t.Fatal(task, job)
			}
		}
	})
	t.Run("output", func(t *testing.T) {
		if job := ended(t, submit(t, "talk", nil, nil)); job.Status != "completed" || job.Output != "hello\n" {
			t.Fatal(job)
		}
	})
	t.Run("a time limit", func(t *testing.T) {
		job := ended(t, submit(t, "slow", nil, map[string]any{"timeout_seconds": 0.2}))
		if job.Status != "failed" || job.Error.Kind != "Timeout" {
			t.Fatal(job, job.Error)
		}
	})
	t.Run("a cancel", func(t *testing.T) {
		id := submit(t, "hold", nil, nil)
		for {
			if job, _ := client.Get(t.Context(), id); job.Status == "running" {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		operator := foliot.NewClient(foliot.Address{Token: os.Getenv("FOLIOT_OPERATOR_TOKEN")})
		if err := operator.Cancel(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
		if stopped := <-cancelled; stopped != id {
			t.Fatal(stopped)
		}
		if job := ended(t, id); job.Status != "cancelled" {
			t.Fatal(job)
		}
	})
	t.Run("an idempotency key", func(t *testing.T) {
		key := fmt.Sprintf("go-%d", time.Now().UnixNano())
		job := foliot.Job{Task: "add", Payload: sum{1, 1}}
		first, err := client.SubmitOnce(t.Context(), job, key)
		second, again := client.SubmitOnce(t.Context(), job, key)
		if err != nil || again != nil || first.ID != second.ID {
			t.Fatal(first, second, err, again)
		}
	})
	stop()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}

func TestAWrongToken(t *testing.T) {
	worker := &foliot.Worker{Address: foliot.Address{Token: "foliot_wrong"}}
	worker.Task("add", func(context.Context, *foliot.Run) (any, error) { return nil, nil })
	var refusal *foliot.Error
	if err := worker.Run(t.Context()); !errors.As(err, &refusal) || refusal.Status != 401 {
		t.Fatal(err)
	}
}
