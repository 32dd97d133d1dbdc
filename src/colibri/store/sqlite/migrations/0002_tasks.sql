-- Tasks: a projection of the ledger's `task` and `task.text` records, changed only together with them.

CREATE TABLE tasks (
  number            INTEGER PRIMARY KEY CHECK (number >= 1),
  title             TEXT NOT NULL,
  description       TEXT,
  project           TEXT,
  priority          TEXT NOT NULL CHECK (
                      priority = 'low' OR priority = 'medium' OR priority = 'high'
                      OR priority = 'critical'),
  assignee          TEXT,
  status            TEXT NOT NULL CHECK (
                      status = 'INIT' OR status = 'GATHER' OR status = 'ANALYZE'
                      OR status = 'PLAN' OR status = 'APPLY' OR status = 'VERIFY'
                      OR status = 'DONE' OR status = 'CANCELLED'),
  attempt           INTEGER NOT NULL CHECK (attempt >= 1),
  version           INTEGER NOT NULL CHECK (version >= 1),
  created_at        TEXT NOT NULL,
  updated_at        TEXT NOT NULL,
  attempt_seq       INTEGER NOT NULL REFERENCES ledger (seq),  -- where the current attempt began
  open_dependencies INTEGER NOT NULL CHECK (open_dependencies >= 0),
  holder            TEXT,  -- the session that holds it

  task_id           TEXT NOT NULL GENERATED ALWAYS AS (printf('T-%04d', number)) VIRTUAL,
  -- What the queue is sorted by; 0 comes first.
  urgency           INTEGER NOT NULL GENERATED ALWAYS AS (
                      CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1
                                    WHEN 'medium' THEN 2 ELSE 3 END) VIRTUAL,
  remaining         INTEGER NOT NULL GENERATED ALWAYS AS (
                      CASE status WHEN 'VERIFY' THEN 0 WHEN 'APPLY' THEN 1 WHEN 'PLAN' THEN 2
                                  WHEN 'ANALYZE' THEN 3 WHEN 'GATHER' THEN 4 ELSE 5 END) VIRTUAL,
  is_ready          INTEGER NOT NULL GENERATED ALWAYS AS (
                      open_dependencies = 0 AND status <> 'DONE' AND status <> 'CANCELLED') VIRTUAL
) STRICT;

-- The queue of task_next_actions, as a whole, of a project and of an assignee; what others hold is
-- passed over without a look at its row.
CREATE INDEX tasks_ready ON tasks (urgency, remaining, number, holder) WHERE is_ready = 1;
CREATE INDEX tasks_ready_project ON tasks (project, urgency, remaining, number, holder)
  WHERE is_ready = 1 AND project IS NOT NULL;
CREATE INDEX tasks_ready_assignee ON tasks (assignee, urgency, remaining, number, holder)
  WHERE is_ready = 1 AND assignee IS NOT NULL;

-- The pages of task_list.
CREATE INDEX tasks_status ON tasks (status);
CREATE INDEX tasks_project ON tasks (project, number, status, assignee) WHERE project IS NOT NULL;
CREATE INDEX tasks_assignee ON tasks (assignee, number, status) WHERE assignee IS NOT NULL;

CREATE INDEX tasks_held ON tasks (holder) WHERE holder IS NOT NULL;

-- Sessions from which a task was taken: each must claim it again before it changes anything.
CREATE TABLE lost_claims (
  task    INTEGER NOT NULL REFERENCES tasks (number),
  session TEXT NOT NULL,
  PRIMARY KEY (task, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE task_dependencies (
  task       INTEGER NOT NULL REFERENCES tasks (number),
  position   INTEGER NOT NULL,
  depends_on INTEGER NOT NULL REFERENCES tasks (number),
  PRIMARY KEY (task, position)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX task_dependents ON task_dependencies (depends_on, task);

-- How many tasks there are, so that a total never counts rows; '' stands for none. The rows with a
-- field count by that field alone, in blocks of 1024 numbers: a page far into a list is found
-- without a walk.
CREATE TABLE task_counts (
  field    TEXT NOT NULL CHECK (
             field = '' OR field = 'status' OR field = 'project' OR field = 'assignee'),
  project  TEXT NOT NULL,
  assignee TEXT NOT NULL,
  status   TEXT NOT NULL,
  is_ready INTEGER NOT NULL,
  block    INTEGER NOT NULL,
  n        INTEGER NOT NULL CHECK (n >= 0),
  PRIMARY KEY (field, project, assignee, status, is_ready, block)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER tasks_counted AFTER INSERT ON tasks BEGIN
  INSERT INTO task_counts VALUES
    ('', ifnull(NEW.project, ''), ifnull(NEW.assignee, ''), NEW.status, NEW.is_ready, 0, 1),
    ('status', '', '', NEW.status, 0, NEW.number / 1024, 1)
    ON CONFLICT DO UPDATE SET n = n + 1;
  INSERT INTO task_counts SELECT 'project', NEW.project, '', '', 0, NEW.number / 1024, 1
    WHERE NEW.project IS NOT NULL ON CONFLICT DO UPDATE SET n = n + 1;
  INSERT INTO task_counts SELECT 'assignee', '', NEW.assignee, '', 0, NEW.number / 1024, 1
    WHERE NEW.assignee IS NOT NULL ON CONFLICT DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER tasks_recounted AFTER UPDATE OF project, assignee, status, open_dependencies ON tasks
WHEN (OLD.project, OLD.assignee, OLD.status, OLD.is_ready)
  IS NOT (NEW.project, NEW.assignee, NEW.status, NEW.is_ready)
BEGIN
  UPDATE task_counts SET n = n - 1
    WHERE (field, project, assignee, status, is_ready, block) IN (VALUES
      ('', ifnull(OLD.project, ''), ifnull(OLD.assignee, ''), OLD.status, OLD.is_ready, 0),
      ('status', '', '', OLD.status, 0, OLD.number / 1024),
      ('project', OLD.project, '', '', 0, OLD.number / 1024),
      ('assignee', '', OLD.assignee, '', 0, OLD.number / 1024));
  INSERT INTO task_counts VALUES
    ('', ifnull(NEW.project, ''), ifnull(NEW.assignee, ''), NEW.status, NEW.is_ready, 0, 1),
    ('status', '', '', NEW.status, 0, NEW.number / 1024, 1)
    ON CONFLICT DO UPDATE SET n = n + 1;
  INSERT INTO task_counts SELECT 'project', NEW.project, '', '', 0, NEW.number / 1024, 1
    WHERE NEW.project IS NOT NULL ON CONFLICT DO UPDATE SET n = n + 1;
  INSERT INTO task_counts SELECT 'assignee', '', NEW.assignee, '', 0, NEW.number / 1024, 1
    WHERE NEW.assignee IS NOT NULL ON CONFLICT DO UPDATE SET n = n + 1;
END;

-- Search: case-folded title and description of each task, and which of them have any three
-- characters in a row; not where.
CREATE VIRTUAL TABLE task_search USING fts5 (
  text, tokenize = 'trigram case_sensitive 1', columnsize = 0, detail = none);
