#!/bin/sh
# Makes the environment, or brings it up to date: sh envs/setup.sh VENV [PYTHON] [TORCH]
#   PYTHON  the Python to take. Without it an environment that is there keeps its own, and a new one gets the newest of 3.11 to 3.14 that works
#   TORCH   cpu or cuda, the build of PyTorch. Without it cpu, unless an NVIDIA GPU or Slurm is seen, whose nodes may have one
set -eu
venv=$1 wanted=${2:-} torch=${3:-}
here=$(dirname "$0")
lock=$here/requirements.txt
index=https://download.pytorch.org/whl/cpu # PyTorch's own, of builds for the CPU alone
needed="needed is Python 3.11, 3.12 or 3.13, or 3.14 with a C compiler and its headers: on Debian and Ubuntu 'apt install python3 python3-venv' \
(for 3.14 also gcc and python3-dev), on Fedora 'dnf install python3.13'; elsewhere 'uv venv --seed --python 3.13 $venv', or 'conda create -n crossgap python=3.13' and 'conda activate \
crossgap'"

say() { echo "$*" >&2; }
fail() {
	say "$*"
	exit 1
}

# what a Python is: 3.13; "3.13 without venv", as Debian's without python3-venv; "PyPy 3.11" and the like; nothing where it does not run.
# For 3.14 immutables has no build yet, and is compiled.
kind() {
	"$1" -c 'import importlib.util, os, platform, shutil, sys, sysconfig
free = "free-threaded " if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
name = "" if sys.implementation.name == "cpython" else platform.python_implementation() + " "
lacks = [] if all(map(importlib.util.find_spec, ("venv", "ensurepip"))) else ["venv"]
if sys.version_info >= (3, 14):
    lacks += [] if any(map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang"))) else ["a C compiler"]
    lacks += [] if os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")) else ["its headers"]
print(free + name + "%d.%d" % sys.version_info[:2] + " without " * bool(lacks) + " and ".join(lacks))' 2>/dev/null || true
}
suits() { case $1 in 3.11 | 3.12 | 3.13 | 3.14) ;; *) return 1 ;; esac; }

choose() {
	found=''
	for name in python3.14 python3.13 python3.12 python3.11 python3 python; do
		is=$(kind "$name")
		if suits "$is"; then
			python=$name
			return
		fi
		[ -z "$is" ] || found="$found${found:+, }$name is $is"
	done
	fail "no suitable Python was found (${found:-there is none}); $needed"
}

has=$(kind "$venv/bin/python")
if [ -n "$wanted" ]; then
	python=$wanted
	is=$(kind "$python")
	[ -n "$is" ] || fail "PYTHON=$python does not run; $needed"
	suits "$is" || fail "PYTHON=$python is $is; $needed"
elif suits "${has%% without *}"; then
	python='' is=$has # its own
else
	choose
fi

asked=$torch built=$(cat "$venv/.torch" 2>/dev/null || true)
case $torch in
cpu | cuda) ;;
"") if [ -e /proc/driver/nvidia/version ] || nvidia-smi -L >/dev/null 2>&1 || command -v sbatch >/dev/null; then torch=cuda; else torch=cpu; fi ;;
*) fail "TORCH=$torch is neither cpu nor cuda" ;;
esac

if [ "$has" != "$is" ] || [ "$built" != "${asked:-$built}" ]; then
	rm -f "$venv/.complete"
	# of another Python or another build nothing stays; a folder that is no environment is not cleared
	[ -n "$python" ] || python=$("$venv/bin/python" -c 'import sys; print(sys._base_executable)')
	if [ -e "$venv/pyvenv.cfg" ]; then "$python" -m venv --clear "$venv"; else "$python" -m venv "$venv"; fi
	echo "$torch" >"$venv/.torch"
elif [ "$venv/.complete" -nt "$lock" ]; then
	exit
fi
rm -f "$venv/.complete"
[ -e "$venv/.torch" ] || echo "$torch" >"$venv/.torch"
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip >/dev/null || fail "$venv has no pip; make it anew with one"

# --use-pep517: the pip of older Pythons builds packages that have no wheel in a way that fails for seqeval
# compiled by all cores at once, where pip takes one, but for files that are not for this Python; not left to the first import, since
# PYTHONDONTWRITEBYTECODE may be set
install() {
	{ "$venv/bin/python" -m pip install --progress-bar off --disable-pip-version-check --use-pep517 --no-compile "$@" || echo "pip failed"; } | telling
}
# of what pip says, the files of 10 MB and more and that it has all; its errors go past this
telling() {
	while read -r line; do
		case $line in
		"pip failed") return 1 ;;
		"Downloading "*.whl*"("[1-9][0-9]*" MB)" | "Using cached "*.whl*"("[1-9][0-9]*" MB)")
			file=${line#Downloading } file=${file#Using cached }
			size=${line##*(}
			say "  ${file%%-*}, ${size%)}"
			;;
		"Installing collected packages"*) say "  all is fetched; unpacking it" ;;
		esac
	done
}
say "installing $(grep -c == "$lock") packages into $venv; that takes one to ten minutes, by the network"
if [ "$(cat "$venv/.torch")" = cpu ] && ! "$venv/bin/python" -c 'import importlib.metadata as m; m.version("torch")' 2>/dev/null; then
	# asked once and not for long, since nothing hangs on it
	if install --no-deps --index-url "$index" --retries 0 --timeout 10 "$(grep '^torch==' "$lock")" 2>/dev/null; then
		say "PyTorch is its build for the CPU alone, since no NVIDIA GPU and no Slurm is here (for GPUs: make setup TORCH=cuda)"
	else
		say "PyTorch's builds for the CPU alone ($index) cannot be had from here; the usual build comes, with NVIDIA's libraries for GPUs (3 GB more)"
	fi
fi
install --requirement "$lock"
say "  compiling them"
PYTHONWARNINGS=ignore "$venv/bin/python" -m compileall -qq -j 0 "$venv/lib" || true
touch "$venv/.complete"
