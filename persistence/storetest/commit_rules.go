package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/persistence"
)

func (s *suite) TestACreateCommitIsReadBackWhole(t *testing.T) {
	w := s.world(t)
	w.room(clusterC)
	v := w.vm(func(v *hcp.VM) {
		v.Labels = map[string]string{"tier": "web", "env": "prod"}
		v.UserData, v.SSHKeys, v.Networks = hcp.Sealed{1, 2, 0}, []string{"ssh-ed25519 A"}, []string{"n"}
		v.Conditions = []hcp.Condition{{Type: "x", Reason: "y", Message: "z", Since: w.at(3)}}
	})
	c := w.create(v)
	c.Turn = &persistence.Turn{Job: c.Jobs[0].ID, Step: "create", Attempt: 1}
	w.must(c)

	st := ok(w.store.LoadVM(w.ctx, v.ID))(w)
	if st.Epoch != 1 || st.Seq != 1 {
		t.Errorf("epoch %d seq %d, want 1 and 1", st.Epoch, st.Seq)
	}
	if d := cmp.Diff(v, st.VM); d != "" {
		t.Errorf("VM (-want +got):\n%s", d)
	}
	if d := cmp.Diff(c.Jobs, st.Jobs); d != "" {
		t.Errorf("jobs (-want +got):\n%s", d)
	}
	_ = context.Background
	_ = errors.New
	_ = fmt.Sprint
	_ = sync.Mutex{}
	_ = time.Now
}
