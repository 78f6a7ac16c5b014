import { type AnyObject, type Breakage, edit, remove } from '../overlay-copy.ts';

const OVERLAY = 'production with backups';

const podOf = ({ spec }: AnyObject) => spec.jobTemplate.spec.template.spec;

/** Mistakes in scheduled backups. */
export const BACKUPS: Breakage[] = [
  ['every field', 'CronJob/backup', ({ spec }) => (spec.concurrencyPolicy = 'Allow'), OVERLAY],
  ['every field', 'CronJob/backup', ({ spec }) => delete spec.timeZone, OVERLAY],
  ['every field', 'CronJob/backup', ({ spec }) => (spec.suspend = true), OVERLAY],
  ['every field', 'CronJob/backup', ({ spec }) => delete spec.startingDeadlineSeconds, OVERLAY],
  [
    'every field',
    'CronJob/backup',
    ({ spec }) => delete spec.jobTemplate.spec.activeDeadlineSeconds,
    OVERLAY,
  ],
  ['every field', 'CronJob/backup', (job) => (podOf(job).restartPolicy = 'OnFailure'), OVERLAY],
  [
    'scheduled backup',
    'CronJob/backup',
    (job) => (podOf(job).volumes[2] = { name: 'backups', emptyDir: {} }),
    OVERLAY,
  ],
  ['scheduled backup', 'CronJob/backup', (job) => (podOf(job).containers[0].command[2] = '/tmp'), OVERLAY],
  [
    'scheduled backup',
    'Secret/connections',
    edit('BACKUP_DATABASE_URL', 'bookmarks_backup', 'bookmarks_owner'),
    OVERLAY,
  ],
  [
    'scheduled backup',
    'Secret/connections',
    edit('BACKUP_DATABASE_URL', 'bookmarks_backup', 'bookmarks_a'),
    OVERLAY,
  ],
  ['scheduled backup', 'Secret/connections', edit('BACKUP_DATABASE_URL', 'verify-full', 'require'), OVERLAY],
  [
    'scheduled backup',
    'Secret/connections',
    edit('BACKUP_DATABASE_URL', 'postgres.example.org:5432', 'pgbouncer:6432'),
    OVERLAY,
  ],
  ['claimed volume exists', 'PersistentVolumeClaim/backups', remove, OVERLAY],
  ['references match existing', 'ConfigMap/backup', remove, OVERLAY],
  ['references match existing', 'ConfigMap/backup', ({ data }) => delete data['scheduled.sh'], OVERLAY],
  [
    'references match existing',
    'CronJob/backup',
    (job) => (podOf(job).containers[0].env[0].valueFrom.secretKeyRef.key = 'BACKUP_URL'),
    OVERLAY,
  ],
  ['allow all needed connections', 'NetworkPolicy/backup', ({ spec }) => spec.egress.pop(), OVERLAY],
  ['allow all needed connections', 'NetworkPolicy/backup', ({ spec }) => spec.egress.shift(), OVERLAY],
  [
    'allow all needed connections',
    'NetworkPolicy/backup',
    ({ spec }) => (spec.egress[1].to[0].ipBlock.cidr = '10.30.0.0/24'),
    OVERLAY,
  ],
  [
    'allow nothing else',
    'NetworkPolicy/backup',
    ({ spec }) => spec.egress[1].ports.push({ protocol: 'TCP', port: 443 }),
    OVERLAY,
  ],
  ['every field', 'CronJob/backup', (job) => delete podOf(job).containers[0].securityContext, OVERLAY],
  ['every field', 'CronJob/backup', (job) => delete podOf(job).automountServiceAccountToken, OVERLAY],
  [
    'every field',
    'CronJob/backup',
    ({ spec }) => (spec.jobTemplate.spec.ttlSecondsAfterFinished = 0),
    OVERLAY,
  ],
  [
    'can read its mounted files',
    'CronJob/backup',
    (job) => delete podOf(job).securityContext.fsGroup,
    OVERLAY,
  ],
];
