package sqlite

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
)

// plain turns an argument into what the driver takes.
func plain(a any) driver.Value {
	switch v := a.(type) {
	case nil:
		return nil
	case string:
		return v
	case int64:
		return v
	case int:
		return int64(v)
	case []byte:
		return v
	}
	v := reflect.ValueOf(a)
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	}
	return a
}

// assign stores a value of the driver where Scan was told to; the kinds are those
// that sqlstore.Rows promises.
func assign(dest any, v driver.Value) error {
	switch d := dest.(type) {
	case *string:
		switch s := v.(type) {
		case string:
			*d = s
			return nil
		case []byte:
			*d = string(s)
			return nil
		}
	case *[]byte:
		switch s := v.(type) {
		case nil:
			*d = nil
			return nil
		case string:
			*d = []byte(s)
			return nil
		case []byte:
			*d = bytes.Clone(s)
			return nil
		}
	case *int64:
		if n, ok := v.(int64); ok {
			*d = n
			return nil
		}
	case *int:
		if n, ok := v.(int64); ok {
			*d = int(n)
			return nil
		}
	case *bool:
		if n, ok := v.(int64); ok {
			*d = n != 0
			return nil
		}
	case *sql.Null[int64]:
		n, ok := v.(int64)
		if ok || v == nil {
			*d = sql.Null[int64]{V: n, Valid: ok}
			return nil
		}
	}
	return fmt.Errorf("a column of type %T does not fit %T", v, dest)
}
