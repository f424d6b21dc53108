package foliot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Job is a job to submit. docs/job-fields.md describes its fields; Fields takes those that have no field here.
type Job struct {
	Task           string         `json:"task,omitempty"`
	Command        string         `json:"command,omitempty"`
	Payload        any            `json:"payload,omitempty"`
	Name           string         `json:"name,omitempty"`
	Queue          string         `json:"queue,omitempty"`
	Priority       int            `json:"priority,omitempty"`
	DelaySeconds   float64        `json:"delay_seconds,omitempty"`
	Cron           string         `json:"cron,omitempty"`
	Every          string         `json:"every,omitempty"`
	Timezone       string         `json:"timezone,omitempty"`
	Retries        *int           `json:"retries,omitempty"`
	TimeoutSeconds float64        `json:"timeout_seconds,omitempty"`
	Tags           []string       `json:"tags,omitempty"`
	Fields         map[string]any `json:"-"`
}

// MarshalJSON adds the other fields.
func (j Job) MarshalJSON() ([]byte, error) {
	type plain Job
	text, err := json.Marshal(plain(j))
	if err != nil || len(j.Fields) == 0 {
		return text, err
	}
	all := map[string]any{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	for name, value := range j.Fields {
		all[name] = value
	}
	return json.Marshal(all)
}

// Submitted is a job as the server shows it.
type Submitted struct {
	ID      string          `json:"id"`
	Status  string          `json:"status"`
	Attempt int             `json:"attempt"`
	Result  json.RawMessage `json:"result"`
	Output  string          `json:"output"`
	Error   *AttemptError   `json:"error"`
}

// JobFailed is the error of Result for a job without a result.
type JobFailed struct{ Job Submitted }

func (e *JobFailed) Error() string {
	if e.Job.Error != nil {
		return fmt.Sprintf("job %s %s: %s: %s", e.Job.ID, e.Job.Status, e.Job.Error.Kind, e.Job.Error.Message)
	}
	return fmt.Sprintf("job %s %s", e.Job.ID, e.Job.Status)
}

// Client submits jobs and waits for their results.
type Client struct{ connection *connection }

// NewClient needs no server yet.
func NewClient(address Address) *Client { return &Client{connect(address)} }

// Submit creates a job.
func (c *Client) Submit(ctx context.Context, job Job) (Submitted, error) {
	var made Submitted
	return made, c.connection.send(ctx, "POST", "/v1/jobs", job, &made, nil, 0)
}

// SubmitOnce creates a job once for each idempotency key. It repeats the request until there is an answer.
func (c *Client) SubmitOnce(ctx context.Context, job Job, idempotencyKey string) (Submitted, error) {
	headers := map[string]string{"Idempotency-Key": idempotencyKey}
	for tries := 1; ; tries++ {
		var made Submitted
		err := c.connection.send(ctx, "POST", "/v1/jobs", job, &made, headers, 0)
		if !errors.Is(err, ErrUnavailable) || tries == 5 {
			return made, err
		}
		if err := pause(ctx, 200*time.Millisecond<<tries); err != nil {
			return made, err
		}
	}
}

// Get shows a job.
func (c *Client) Get(ctx context.Context, id string) (Submitted, error) {
	var job Submitted
	return job, c.connection.send(ctx, "GET", "/v1/jobs/"+url.PathEscape(id), nil, &job, nil, 0)
}

// Cancel asks a job to end.
func (c *Client) Cancel(ctx context.Context, id, reason string) error {
	body := map[string]any{}
	if reason != "" {
		body["reason"] = reason
	}
	return c.connection.send(ctx, "POST", "/v1/runs/"+url.PathEscape(id)+"/cancel", body, nil, nil, 0)
}

// Wait returns the job when it has ended.
func (c *Client) Wait(ctx context.Context, id string) (Submitted, error) {
	for wait := 50 * time.Millisecond; ; wait = min(wait*3/2, time.Second) {
		job, err := c.Get(ctx, id)
		if err != nil {
			return job, err
		}
		switch job.Status {
		case "completed", "failed", "cancelled", "skipped":
			return job, nil
		}
		if err := pause(ctx, wait); err != nil {
			return job, err
		}
	}
}

// Result waits for the job and decodes the result of its task. The error is a *JobFailed if it did not complete.
func (c *Client) Result(ctx context.Context, id string, result any) error {
	job, err := c.Wait(ctx, id)
	if err != nil {
		return err
	}
	if job.Status != "completed" {
		return &JobFailed{job}
	}
	if len(job.Result) == 0 {
		return nil
	}
	return json.Unmarshal(job.Result, result)
}

func pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}
