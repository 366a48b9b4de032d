package sqlite

import "syscall"

type unixStat = syscall.Stat_t
