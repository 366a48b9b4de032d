-- +goose Up
-- One dialect for SQLite and PostgreSQL. Times are integer microseconds since 1970,
-- 0 where the domain has the zero time. Bodies are opaque JSON; whatever is
-- filtered, ordered or counted is a column. Ids and event numbers are made by HCP.

create table meta (
    name  text primary key,
    value text not null
);

-- epoch, seq: the fence. event_seq: how many events the actor has written.
-- state: what a tenant sees while the cluster answers; state_cut: while it does not.
-- quota_class: 0 must hold nothing, 1 must hold its sizes.
create table vms (
    id           text primary key,
    epoch        bigint not null,
    seq          bigint not null,
    event_seq    bigint not null,
    org          text not null,
    project      text not null,
    owner        text not null,
    zone         text not null,
    cluster      text not null,
    name         text not null,
    holds_name   smallint not null,
    lifecycle    text not null,
    activity     text not null,
    power        text not null,
    power_at     bigint not null,
    state        text not null,
    state_cut    text not null,
    gone         smallint not null,
    has_ref      smallint not null,
    ref_id       text not null,
    quota_class  smallint not null,
    vcpus        bigint not null,
    memory_mib   bigint not null,
    disk_gib     bigint not null,
    turn_job     text not null,
    turn_step    text not null,
    turn_attempt bigint not null,
    labels       text not null,
    created_at   bigint not null,
    body         text not null
);
create unique index vms_name on vms (name, project) where holds_name = 1;
create index vms_old_name on vms (name, project) where holds_name = 0;
create unique index vms_ref on vms (cluster, ref_id) where ref_id <> '';
create index vms_all on vms (gone, created_at, id);
create index vms_project on vms (project, gone, created_at, id);
create index vms_state on vms (project, state, created_at, id);
create index vms_cluster on vms (cluster, gone, created_at, id);

create table vm_labels (
    vm         text not null,
    label      text not null,
    value      text not null,
    project    text not null,
    gone       smallint not null,
    created_at bigint not null,
    primary key (vm, label)
);
create index vm_labels_value on vm_labels (label, value, project, gone, created_at, vm);

create table jobs (
    id          text primary key,
    vm          text not null,
    cluster     text not null,
    org         text not null,
    project     text not null,
    kind        text not null,
    state       text not null,
    final       smallint not null,
    queue       bigint not null,
    wake_at     bigint not null,
    created_at  bigint not null,
    finished_at bigint not null,
    body        text not null
);
create index jobs_vm on jobs (vm, final, queue);
create index jobs_due on jobs (wake_at, id) where final = 0;
create index jobs_project on jobs (project, created_at, id);
create index jobs_all on jobs (created_at, id);

-- n is the order of insertion; pos the gap-free position given by the publisher.
create table events (
    n       bigint primary key,
    actor   text not null,
    seq     bigint not null,
    pos     bigint,
    type    text not null,
    time    bigint not null,
    project text not null,
    vm      text not null,
    body    text not null
);
create unique index events_actor on events (actor, seq);
create unique index events_pos on events (pos) where pos is not null;
create index events_unpublished on events (n) where pos is null;

create table audit (
    time       bigint not null,
    id         text not null,
    kind       text not null,
    actor      text not null,
    action     text not null,
    project    text not null,
    request_id text not null,
    body       text not null,
    primary key (time, id)
);
create index audit_project on audit (project, time, id);
create index audit_request on audit (request_id);

-- cap is null for unlimited.
create table quota_counters (
    scope    text not null,
    id       text not null,
    resource text not null,
    cap      bigint,
    used     bigint not null,
    primary key (scope, id, resource)
);

create table quota_holds (
    vm       text not null,
    resource text not null,
    amount   bigint not null,
    org      text not null,
    project  text not null,
    holder   text not null,
    primary key (vm, resource)
);
create index quota_holds_project on quota_holds (project);

-- limited is 0 where no limit was ever set: nothing may be claimed then.
create table capacity (
    cluster           text primary key,
    limited           smallint not null,
    limit_vcpus       bigint not null,
    limit_memory_mib  bigint not null,
    limit_disk_gib    bigint not null,
    claimed_vcpus     bigint not null,
    claimed_memory_mib bigint not null,
    claimed_disk_gib  bigint not null
);

create table capacity_claims (
    cluster    text not null,
    vm         text not null,
    host       text not null,
    vcpus      bigint not null,
    memory_mib bigint not null,
    disk_gib   bigint not null,
    primary key (cluster, vm)
);

create table idempotency (
    principal   text not null,
    project     text not null,
    method      text not null,
    path        text not null,
    key         text not null,
    fingerprint text not null,
    status      bigint not null,
    vm          text not null,
    job         text not null,
    created_at  bigint not null,
    expires_at  bigint not null,
    body        bytea,
    primary key (principal, project, method, path, key)
);
create index idempotency_expiry on idempotency (expires_at);

create table records (
    kind    text not null,
    id      text not null,
    name    text not null,
    parent  text not null,
    version bigint not null,
    body    bytea,
    primary key (kind, id)
);
create unique index records_name on records (kind, name) where name <> '';
create index records_parent on records (kind, parent, name, id);

create table clusters (
    id        text primary key,
    name      text not null,
    epoch     bigint not null,
    seq       bigint not null,
    event_seq bigint not null,
    deleted   smallint not null,
    body      text not null
);
create unique index clusters_name on clusters (name) where deleted = 0;

create table reachability (
    cluster   text primary key,
    reachable smallint not null,
    body      text not null
);

create table observed (
    vm      text primary key,
    cluster text not null,
    power   text not null,
    missing smallint not null,
    at      bigint not null,
    body    text not null
);
create index observed_cluster on observed (cluster, vm);

create table secrets (
    name   text primary key,
    sealed bytea not null
);

create table ring_keys (
    purpose text primary key,
    sealed  bytea not null
);

create table members (
    node        text primary key,
    incarnation bigint not null,
    version     text not null,
    peer_addr   text not null,
    joined_at   bigint not null,
    renewed_at  bigint not null,
    gone        smallint not null
);
