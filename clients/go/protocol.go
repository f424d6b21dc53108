package foliot

import "encoding/json"

// The messages of the worker protocol: see docs/worker-protocol.md.

type settings struct {
	LeaseSeconds   float64 `json:"lease_seconds"`
	BeatSeconds    float64 `json:"beat_seconds"`
	WaitSeconds    float64 `json:"wait_seconds"`
	Retries        int     `json:"retries"`
	TimeoutSeconds float64 `json:"timeout_seconds"`
	ResultMaxBytes int     `json:"result_max_bytes"`
	OutputMaxBytes int     `json:"output_max_bytes"`
}

type offer struct {
	Queue       string          `json:"queue"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

type claimed struct {
	RunID          string                     `json:"run_id"`
	Token          int64                      `json:"token"`
	Queue          string                     `json:"queue"`
	Task           string                     `json:"task"`
	Attempt        int                        `json:"attempt"`
	Lost           int                        `json:"lost"`
	Payload        json.RawMessage            `json:"payload"`
	Options        map[string]json.RawMessage `json:"options"`
	HasUpstream    bool                       `json:"has_upstream"`
	ConcernsOthers bool                       `json:"concerns_others"`
	IsDisabled     bool                       `json:"is_disabled"`
}

type key struct {
	run   string
	token int64
}

func (c claimed) key() key { return key{c.RunID, c.Token} }

// MarshalJSON writes a pair.
func (k key) MarshalJSON() ([]byte, error) { return json.Marshal([]any{k.run, k.token}) }

type end struct {
	RunID   string `json:"run_id"`
	Token   int64  `json:"token"`
	IsLost  bool   `json:"is_lost"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type beat struct {
	IsRenewed  bool  `json:"is_renewed"`
	End        []end `json:"end"`
	IsDraining bool  `json:"is_draining"`
	OwnsUnheld bool  `json:"owns_unheld"`
}

// AttemptError says why an attempt failed.
type AttemptError struct {
	Kind      string `json:"kind"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
}

type ended struct {
	RunID        string                     `json:"run_id"`
	Token        int64                      `json:"token"`
	Ending       string                     `json:"ending"`
	Attempt      int                        `json:"attempt"`
	Lost         int                        `json:"lost"`
	Options      map[string]json.RawMessage `json:"options,omitempty"`
	Result       json.RawMessage            `json:"result,omitempty"`
	Error        *AttemptError              `json:"error,omitempty"`
	Output       []byte                     `json:"output,omitempty"`
	Reason       string                     `json:"reason,omitempty"`
	DelaySeconds *float64                   `json:"delay_seconds,omitempty"`
	IsRetryable  *bool                      `json:"is_retryable,omitempty"`
}

type part struct {
	RunID    string `json:"run_id"`
	Token    int64  `json:"token"`
	Position int    `json:"position"`
	Chunk    []byte `json:"chunk"`
}

type progress struct {
	RunID   string  `json:"run_id"`
	Token   int64   `json:"token"`
	Attempt int     `json:"attempt"`
	Share   float64 `json:"share"`
	Message string  `json:"message"`
}

type upstream struct {
	Runs []struct {
		Results []struct {
			Key    string          `json:"key"`
			State  string          `json:"state"`
			Result json.RawMessage `json:"result"`
		} `json:"results"`
	} `json:"runs"`
}
