// Package foliot submits jobs to Foliot and runs workers. A worker talks to the API server and needs no access to the
// database. See docs/worker-protocol.md for the protocol.
package foliot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const answerTime = 30 * time.Second

// Error is a refusal of the server. Code is stable; Field names the field at fault.
type Error struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Field  string `json:"field"`
}

func (e *Error) Error() string { return e.Detail }

// ErrUnavailable means that no answer arrived, or one that passes. The server may have carried out the request.
var ErrUnavailable = errors.New("foliot: the server is not available")

// Address says where the server is. Empty fields come from FOLIOT_URL and FOLIOT_TOKEN.
type Address struct {
	URL   string
	Token string
	// Namespace is only for a token for all namespaces.
	Namespace string
}

type connection struct {
	address Address
	http    *http.Client
}

func connect(address Address) *connection {
	if address.URL == "" {
		address.URL = os.Getenv("FOLIOT_URL")
	}
	if address.URL == "" {
		address.URL = "http://127.0.0.1:8000"
	}
	if address.Token == "" {
		address.Token = os.Getenv("FOLIOT_TOKEN")
	}
	address.URL = strings.TrimRight(address.URL, "/")
	return &connection{address, &http.Client{}}
}

// send decodes the answer into answer, unless that is nil. Every error is an *Error, wraps ErrUnavailable, or is that of
// the context.
func (c *connection) send(
	ctx context.Context, method, path string, body, answer any, headers map[string]string, extra time.Duration,
) error {
	limited, cancel := context.WithTimeout(ctx, answerTime+extra)
	defer cancel()
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(limited, method, c.address.URL+path, content)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.address.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.address.Token)
	}
	if c.address.Namespace != "" {
		request.Header.Set("Foliot-Namespace", c.address.Namespace)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return unavailable(ctx, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return unavailable(ctx, err)
	}
	if response.StatusCode < 300 {
		if answer == nil {
			return nil
		}
		return json.Unmarshal(text, answer)
	}
	switch response.StatusCode {
	case 429, 500, 502, 503, 504:
		return fmt.Errorf("%w: it answered %d", ErrUnavailable, response.StatusCode)
	}
	refusal := &Error{Status: response.StatusCode, Code: "foreign"}
	if json.Unmarshal(text, refusal) != nil || refusal.Detail == "" {
		refusal.Detail = fmt.Sprintf("the server answered %d, unlike a Foliot server", response.StatusCode)
	}
	return refusal
}

func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %v", ErrUnavailable, err)
}
