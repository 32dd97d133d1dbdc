-- Tasks: a projection of the ledger's `task` and `task.text` records, changed only together with them.
-- What is counted has no CHECK, as the ledger has none: `count_task` refuses what they would.

CREATE TABLE tasks (
  number            bigint PRIMARY KEY,
  title             text COLLATE "C" NOT NULL,
  description       text COLLATE "C",
  project           text COLLATE "C",
  priority          text COLLATE "C" NOT NULL,
  assignee          text COLLATE "C",
  status            text COLLATE "C" NOT NULL,
  attempt           bigint NOT NULL,
  version           bigint NOT NULL,
  created_at        text COLLATE "C" NOT NULL,
  updated_at        text COLLATE "C" NOT NULL,
  attempt_seq       bigint NOT NULL REFERENCES ledger (seq),  -- where the current attempt began
  open_dependencies bigint NOT NULL,
  holder            text COLLATE "C",  -- the session that holds it

  task_id           text COLLATE "C" NOT NULL GENERATED ALWAYS AS (
                      'T-' || lpad(number::text, greatest(4, length(number::text)), '0')) STORED,
  -- What the queue is sorted by; 0 comes first.
  urgency           bigint NOT NULL GENERATED ALWAYS AS (
                      CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1
                                    WHEN 'medium' THEN 2 ELSE 3 END) STORED,
  remaining         bigint NOT NULL GENERATED ALWAYS AS (
                      CASE status WHEN 'VERIFY' THEN 0 WHEN 'APPLY' THEN 1 WHEN 'PLAN' THEN 2
                                  WHEN 'ANALYZE' THEN 3 WHEN 'GATHER' THEN 4 ELSE 5 END) STORED,
  is_ready          bigint NOT NULL GENERATED ALWAYS AS (
                      CASE WHEN open_dependencies = 0 AND status <> 'DONE' AND status <> 'CANCELLED'
                           THEN 1 ELSE 0 END) STORED
);

-- The queue of task_next_actions, as a whole, of a project and of an assignee.
CREATE INDEX tasks_ready ON tasks (urgency, remaining, number, holder) WHERE is_ready = 1;
CREATE INDEX tasks_ready_project ON tasks (project, urgency, remaining, number, holder)
  WHERE is_ready = 1 AND project IS NOT NULL;
CREATE INDEX tasks_ready_assignee ON tasks (assignee, urgency, remaining, number, holder)
  WHERE is_ready = 1 AND assignee IS NOT NULL;

-- The pages of task_list.
CREATE INDEX tasks_status ON tasks (status, number);
CREATE INDEX tasks_project ON tasks (project, number, status, assignee) WHERE project IS NOT NULL;
CREATE INDEX tasks_assignee ON tasks (assignee, number, status) WHERE assignee IS NOT NULL;

CREATE INDEX tasks_held ON tasks (holder) WHERE holder IS NOT NULL;

-- Sessions from which a task was taken: each must claim it again before it changes anything.
CREATE TABLE lost_claims (
  task    bigint NOT NULL REFERENCES tasks (number),
  session text COLLATE "C" NOT NULL,
  PRIMARY KEY (task, session)
);

CREATE TABLE task_dependencies (
  task       bigint NOT NULL REFERENCES tasks (number),
  position   bigint NOT NULL,
  depends_on bigint NOT NULL REFERENCES tasks (number),
  PRIMARY KEY (task, position)
);

CREATE UNIQUE INDEX task_dependents ON task_dependencies (depends_on, task);

-- How many tasks there are, so that a total never counts rows; '' stands for none. The rows with a
-- field count by that field alone, in blocks of 1024 numbers: a page far into a list is found
-- without a walk. Only the triggers write here.
CREATE TABLE task_counts (
  field    text COLLATE "C" NOT NULL,
  project  text COLLATE "C" NOT NULL,
  assignee text COLLATE "C" NOT NULL,
  status   text COLLATE "C" NOT NULL,
  is_ready bigint NOT NULL,
  block    bigint NOT NULL,
  n        bigint NOT NULL,
  PRIMARY KEY (field, project, assignee, status, is_ready, block)
);

-- What a task counts for, and what it no longer counts for; nothing where that is the same. All in
-- one statement: a row with 1 is counted, one with 0 no longer is.
CREATE FUNCTION count_task() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
DECLARE
  place bigint := NEW.number / 1024;
  was   boolean := TG_OP = 'UPDATE';
  moved boolean := OLD.status IS DISTINCT FROM NEW.status;
  given boolean := OLD.project IS DISTINCT FROM NEW.project;
  taken boolean := OLD.assignee IS DISTINCT FROM NEW.assignee;
BEGIN
  IF least(NEW.number, NEW.attempt, NEW.version, NEW.open_dependencies + 1) < 1
    OR NEW.priority <> ALL ('{low,medium,high,critical}')
    OR NEW.status <> ALL ('{INIT,GATHER,ANALYZE,PLAN,APPLY,VERIFY,DONE,CANCELLED}')
  THEN
    RAISE EXCEPTION USING ERRCODE = 'check_violation',
      MESSAGE = format('a field of task %s has a value that no task has', NEW.number);
  END IF;
  IF NOT (moved OR given OR taken OR OLD.is_ready IS DISTINCT FROM NEW.is_ready) THEN
    RETURN NULL;
  END IF;
  INSERT INTO task_counts AS counted
    SELECT field, project, assignee, status, is_ready, block, n FROM (VALUES
      (was, '', coalesce(OLD.project, ''), coalesce(OLD.assignee, ''), OLD.status,
        OLD.is_ready, 0, 0),
      (was AND moved, 'status', '', '', OLD.status, 0, place, 0),
      (was AND given, 'project', OLD.project, '', '', 0, place, 0),
      (was AND taken, 'assignee', '', OLD.assignee, '', 0, place, 0),
      (true, '', coalesce(NEW.project, ''), coalesce(NEW.assignee, ''), NEW.status,
        NEW.is_ready, 0, 1),
      (moved, 'status', '', '', NEW.status, 0, place, 1),
      (given, 'project', NEW.project, '', '', 0, place, 1),
      (taken, 'assignee', '', NEW.assignee, '', 0, place, 1)
    ) AS task (counts, field, project, assignee, status, is_ready, block, n)
    WHERE counts AND project IS NOT NULL AND assignee IS NOT NULL
    ON CONFLICT (field, project, assignee, status, is_ready, block)
    DO UPDATE SET n = counted.n + 2 * EXCLUDED.n - 1;
  RETURN NULL;
END $$;

CREATE TRIGGER tasks_counted AFTER INSERT OR UPDATE ON tasks
FOR EACH ROW EXECUTE FUNCTION count_task();

-- Search: case-folded title and description of each task.
CREATE TABLE task_search (
  number bigint PRIMARY KEY,
  text   text COLLATE "C" NOT NULL
);
