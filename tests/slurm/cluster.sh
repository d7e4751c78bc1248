#!/usr/bin/env bash
# A Slurm cluster of one node, for tests: partitions `cpu` and `gpu` (two GPUs, which are device files that are always there), from Debian's packages.
#
#   eval "$(tests/slurm/cluster.sh up)"          # start; afterwards sbatch, squeue, sacct, … speak to it
#   eval "$(tests/slurm/cluster.sh up plain)"    # the same without accounting (no slurmdbd)
#   tests/slurm/cluster.sh status
#   tests/slurm/cluster.sh down
#
# All it writes (configuration, key, database, spool, logs) lies in one folder ($CROSSGAP_SLURM, or one in /tmp); `down`
# removes it. Ports are free ones, sockets lie in the folder. It needs no root, except to install what is missing, and does not start
# beside another Slurm.
set -euo pipefail

folder=${CROSSGAP_SLURM:-/tmp/crossgap-slurm-$(id -u)}
packages=(slurmctld slurmd slurm-client slurmdbd munge mariadb-server)
daemons=(munged mariadbd slurmdbd slurmctld slurmd) # in the order in which they start
# what the node says it has: enough for the shipped profile, as nothing is ever filled
cpus=12 memory=100000
export SLURM_CONF=$folder/slurm.conf

fail() {
  echo "cluster.sh: $*" >&2
  exit 1
}

up() {
  [[ ! -e $folder ]] || fail "$folder is there already; take that cluster down first: tests/slurm/cluster.sh down"
  install_packages
  refuse_beside_another
  (umask 077 && mkdir -p "$folder"/{bin,run,log,state,spool,db}) # jobs must not need to look inside
  trap 'echo "cluster.sh: did not start; the ends of its logs:" >&2; tail -n 5 "$folder"/log/* >&2; down' EXIT

  dd if=/dev/urandom of="$folder/munge.key" bs=1024 count=1 status=none
  chmod 400 "$folder/munge.key"
  start munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/run/munge" \
    --pid-file="$folder/run/munged.own" --log-file="$folder/log/munged.own" --seed-file="$folder/state/munge.seed"
  wait_for "munge --no-input --socket=$folder/run/munge"

  # within a job the executor plugin takes all SLURM_… from srun's environment, as clusters have their configuration in /etc
  printf '#!/bin/sh\nSLURM_CONF=%s exec %s "$@"\n' "$SLURM_CONF" "$(command -v srun)" >"$folder/bin/srun"
  chmod 755 "$folder/bin/srun"

  write_configuration "$1"
  if [[ $1 == accounting ]]; then
    start_accounting
  fi
  start slurmctld -D
  wait_for "scontrol ping"
  start slurmd -D -N node
  wait_for "[[ \$(sinfo --noheader --partition=gpu --format=%T) == idle ]]"
  trap - EXIT
  echo "export SLURM_CONF=$SLURM_CONF PATH=$folder/bin:\$PATH"
}

down() {
  [[ -d $folder ]] || return 0
  if running slurmctld; then
    scancel --user="$(id -un)" --quiet --signal=KILL || true
    scancel --user="$(id -un)" --quiet || true
    wait_for "[[ -z \$(squeue --noheader) ]]" || true
  fi
  for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do
    stop "${daemons[i]}"
  done
  kill_jobs
  wait_for 'rm -rf "$folder"' # what a daemon that is going still writes
}

status() {
  [[ -d $folder ]] || fail "no cluster in $folder"
  for daemon in "${daemons[@]}"; do
    echo "$daemon: $(running "$daemon" && echo "process $(<"$folder/run/$daemon.pid")" || echo "not running")"
  done
  sinfo
  squeue --format="%i %P %T %M %l %k"
}

# ---- daemons ---------------------------------------------------------------------------------------

start() { # a daemon in the foreground of a session of its own
  setsid "$(command -v "$1" || echo "/usr/sbin/$1")" "${@:2}" >"$folder/log/$1" 2>&1 </dev/null &
  echo $! >"$folder/run/$1.pid"
}

running() { # ours, as its number may have gone to another process; and no zombie
  [[ -e $folder/run/$1.pid && $(ps --no-headers --format stat,comm --pid "$(<"$folder/run/$1.pid")") == [!Z]*" $1" ]]
}

stop() {
  running "$1" || return 0
  kill "$(<"$folder/run/$1.pid")"
  wait_for "! running $1" || kill -9 "$(<"$folder/run/$1.pid")"
}

kill_jobs() { # what scancel did not reach: processes that have this cluster and a job in their environment, and who watches over them
  {
    comm -12 <(grep -lsz "^SLURM_CONF=$SLURM_CONF$" /proc/[0-9]*/environ) <(grep -lsz "^SLURM_JOB_ID=" /proc/[0-9]*/environ)
    find /proc/[0-9]*/fd -lname "$folder/log/slurmstepd" 2>/dev/null
  } | cut -d/ -f3 | sort -u | xargs --no-run-if-empty kill -9 2>/dev/null || true
}

wait_for() { # until the command succeeds, for at most a minute
  local end=$((SECONDS + 60))
  while ((SECONDS < end)); do
    if eval "$1" >/dev/null 2>&1; then return 0; fi
    sleep 0.2
  done
  echo "cluster.sh: waited a minute in vain: $1" >&2
  return 1
}

refuse_beside_another() {
  local daemon conf
  for daemon in slurmctld slurmd slurmdbd munged; do
    ! pgrep --exact --runstates RSD "$daemon" >/dev/null || fail "a $daemon runs on this machine, and tests never touch a Slurm that is there; use another machine"
  done
  for conf in /etc/slurm/slurm.conf /etc/slurm-llnl/slurm.conf; do
    [[ ! -e $conf ]] || fail "$conf is there: this machine belongs to a Slurm cluster, which tests never touch; use another machine"
  done
}

install_packages() {
  local missing=() package
  for package in "${packages[@]}"; do
    dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  refuse_beside_another
  [[ $(id -u) == 0 ]] || fail "missing packages; as root: apt-get install --no-install-recommends ${missing[*]}"
  (
    # the packages would start services of their own
    if [[ ! -e /usr/sbin/policy-rc.d ]]; then
      trap 'rm -f /usr/sbin/policy-rc.d' EXIT
      printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
      chmod 755 /usr/sbin/policy-rc.d
    fi
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install --yes -qq --no-install-recommends "${missing[@]}"
  ) >&2
}

# ---- configuration ---------------------------------------------------------------------------------

free_ports() {
  python3 - "$1" <<'END'
import socket, sys
sockets = [socket.create_server(("localhost", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in sockets))
END
}

write_configuration() { # accounting | plain
  local ctld d dbd user
  user=$(id -un)
  read -r ctld d dbd < <(free_ports 3)
  cat >"$SLURM_CONF" <<END
ClusterName=crossgap
SlurmctldHost=$(hostname -s)(localhost)
SlurmUser=$user
SlurmdUser=$user
AuthInfo=socket=$folder/run/munge
SlurmctldPort=$ctld
SlurmdPort=$d
SlurmctldPidFile=$folder/run/slurmctld.own
SlurmdPidFile=$folder/run/slurmd.own
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmdLogFile=$folder/log/slurmstepd
MailProg=/bin/true
ReturnToService=2
SchedulerParameters=batch_sched_delay=1,sched_min_interval=100000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
# a machine without cgroups of its own will do; memory is watched by polling
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=node NodeHostname=$(hostname -s) NodeAddr=localhost CPUs=$cpus RealMemory=$memory Gres=gpu:fake:2
PartitionName=cpu Nodes=node Default=YES MaxTime=2-00:00
PartitionName=gpu Nodes=node MaxTime=2-00:00
END
  printf 'Name=gpu Type=fake File=%s\n' /dev/null /dev/zero >"$folder/gres.conf"
  [[ $1 == accounting ]] || return 0
  cat >>"$SLURM_CONF" <<END
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=$dbd
AccountingStoragePass=$folder/run/munge
AccountingStorageTRES=gres/gpu,gres/gpu:fake
AccountingStorageEnforce=associations,limits
AccountingStoreFlags=job_comment
END
  cat >"$folder/slurmdbd.conf" <<END
DbdHost=localhost
DbdPort=$dbd
SlurmUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge
PidFile=$folder/run/slurmdbd.own
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=$user
StorageLoc=accounting
END
  chmod 600 "$folder/slurmdbd.conf"
}

start_accounting() {
  local user
  user=$(id -un)
  mariadb-install-db --no-defaults --user="$user" --datadir="$folder/db" --skip-test-db \
    --auth-root-authentication-method=socket --auth-root-socket-user="$user" >"$folder/log/mariadb-install-db" 2>&1
  start mariadbd --no-defaults --user="$user" --datadir="$folder/db" --socket="$folder/run/mariadb" --pid-file="$folder/run/mariadbd.own" \
    --skip-networking --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=0
  wait_for "mariadb-admin --no-defaults --socket=$folder/run/mariadb ping"
  MYSQL_UNIX_PORT=$folder/run/mariadb start slurmdbd -D
  wait_for "sacctmgr show cluster"
  # a user with an account, as on a cluster that asks for one
  sacctmgr --immediate --quiet add cluster crossgap
  sacctmgr --immediate --quiet add account project Description=tests Organization=tests
  sacctmgr --immediate --quiet add user "$user" Account=project
  sacctmgr --immediate --quiet modify user "$user" set DefaultAccount=project
} >"$folder/log/sacctmgr"

case ${1:-} in
  up) up "${2:-accounting}" ;;
  down) down ;;
  status) status ;;
  *) fail "usage: cluster.sh up [accounting|plain] | down | status" ;;
esac
