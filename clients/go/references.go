package foliot

import (
	"encoding/json"
	"fmt"
)

// resolved replaces references such as {"$result": "step", "path": ["rows", 0]} in a payload by the results.
func resolved(payload json.RawMessage, results map[string]json.RawMessage) (json.RawMessage, error) {
	var tree any
	if err := json.Unmarshal(payload, &tree); err != nil {
		return nil, err
	}
	found, err := replaced(tree, results)
	if err != nil {
		return nil, err
	}
	return json.Marshal(found)
}

func replaced(value any, results map[string]json.RawMessage) (any, error) {
	var err error
	switch value := value.(type) {
	case []any:
		for place, one := range value {
			if value[place], err = replaced(one, results); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if name, isReference := value["$result"].(string); isReference {
			return lookUp(name, value["path"], results)
		}
		for field, one := range value {
			if value[field], err = replaced(one, results); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func lookUp(name string, path any, results map[string]json.RawMessage) (any, error) {
	text, isThere := results[name]
	if !isThere {
		return nil, fmt.Errorf("the payload refers to the result of %q, but there is none", name)
	}
	var found any
	if len(text) > 0 {
		if err := json.Unmarshal(text, &found); err != nil {
			return nil, err
		}
	}
	parts, isList := path.([]any)
	if !isList && path != nil {
		parts = []any{path}
	}
	for _, part := range parts {
		isThere = false
		switch step := part.(type) {
		case string:
			if object, isObject := found.(map[string]any); isObject {
				found, isThere = object[step]
			}
		case float64:
			if list, isList := found.([]any); isList && step >= 0 && int(step) < len(list) {
				found, isThere = list[int(step)], true
			}
		}
		if !isThere {
			return nil, fmt.Errorf("the result of %q has nothing at %v", name, path)
		}
	}
	return found, nil
}
