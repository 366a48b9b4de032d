package main

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"

	"github.com/lotuscloud/hcp/internal/config"
)

// logger writes JSON, or text where a person looks on.
func logger(cfg config.Config, w io.Writer) *slog.Logger {
	var level slog.Level
	if level.UnmarshalText([]byte(cfg.LogLevel)) != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	f, isFile := w.(*os.File)
	if cfg.LogFormat == "text" || cfg.LogFormat == "auto" && isFile && term.IsTerminal(int(f.Fd())) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
