// A library for LD_PRELOAD that disturbs what a program writes: the system calls that change files below a directory are
// counted, and one of them fails, is torn, or is the program's last. It stands between the program and libc, so that
// the programs that ship are tested as they are, and calls that bypass io/write_calls.h are disturbed, too.
//
//   LATTICE_FAULT_UNDER    the directory, an absolute path
//   LATTICE_FAULT_COUNTER  a file of 8 bytes in which calls are counted, for a program and its children together
//   LATTICE_FAULT          one or more of these, with ";" between them:
//     kill N       SIGKILL in place of call N
//     tear N       the same, but a write first transfers half of its bytes
//     error N C E  calls N to N+C-1 fail with the errno E
//     clock N S    from call N on the wall clock is S seconds ahead
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

// The function of that name behind this library.
template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

enum class Kind { kKill, kTear, kError, kClock };

struct Fault {
  Kind kind;
  int64_t first = 0, count = 1, value = 0;
};

struct Plan {
  std::string under;
  std::vector<Fault> faults;
  std::atomic<int64_t>* counter = nullptr;
};

std::atomic<int64_t>* MapCounter(const char* path) {
  static std::atomic<int64_t> own{0};
  if (path == nullptr) return &own;
  const int file = Next<int(const char*, int, ...)>("open")(path, O_RDWR | O_CLOEXEC);
  void* memory =
      file < 0 ? MAP_FAILED : ::mmap(nullptr, sizeof(own), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) Next<int(int)>("close")(file);
  return memory == MAP_FAILED ? &own : static_cast<std::atomic<int64_t>*>(memory);
}

Fault ParseFault(const std::string& text) {
  std::array<char, 16> kind = {};
  long long first = 0, second = 0, third = 0;
  const int read = std::sscanf(text.c_str(), "%15s %lld %lld %lld", kind.data(), &first, &second, &third);
  const std::string name = kind.data();
  if (name == "kill" && read == 2) return {Kind::kKill, first};
  if (name == "tear" && read == 2) return {Kind::kTear, first};
  if (name == "error" && read == 4) return {Kind::kError, first, second, third};
  if (name == "clock" && read == 3) return {Kind::kClock, first, 1, second};
  std::fprintf(stderr, "write_faults: '%s' is not kill N, tear N, error N C E or clock N S\n", text.c_str());
  std::_Exit(2);
}

Plan ReadPlan() {
  Plan plan;
  const char* under = std::getenv("LATTICE_FAULT_UNDER");
  const char* faults = std::getenv("LATTICE_FAULT");
  if (under != nullptr) plan.under = under;
  plan.counter = MapCounter(std::getenv("LATTICE_FAULT_COUNTER"));
  std::istringstream list(faults == nullptr ? "" : faults);
  for (std::string one; std::getline(list, one, ';');) plan.faults.push_back(ParseFault(one));
  return plan;
}

const Plan& ThePlan() {
  static const Plan* plan = new Plan(ReadPlan());  // never destroyed: files are written up to the very end
  return *plan;
}

// Descriptors of files below the directory.
std::array<std::atomic<bool>, 1 << 16> watched;

bool IsWatched(int descriptor) {
  return descriptor >= 0 && static_cast<size_t>(descriptor) < watched.size() &&
         watched[static_cast<size_t>(descriptor)];
}

void Watch(int descriptor, bool on) {
  if (descriptor >= 0 && static_cast<size_t>(descriptor) < watched.size())
    watched[static_cast<size_t>(descriptor)] = on;
}

bool IsBelow(const char* path) {
  const std::string& under = ThePlan().under;
  if (under.empty() || path == nullptr) return false;
  std::string whole = path;
  if (whole.front() != '/') {
    std::array<char, PATH_MAX> here = {};
    if (::getcwd(here.data(), here.size()) == nullptr) return false;
    whole = std::string(here.data()) + "/" + whole;
  }
  return whole == under || whole.compare(0, under.size() + 1, under + "/") == 0;
}

// Counts a call. True: it fails, errno is set. Does not return when it is the program's last.
bool Disturb() {
  const Plan& plan = ThePlan();
  const int64_t call = plan.counter->fetch_add(1);
  for (const Fault& fault : plan.faults) {
    if (call < fault.first || call >= fault.first + fault.count || fault.kind == Kind::kClock) continue;
    if (fault.kind != Kind::kError) ::kill(::getpid(), SIGKILL);
    errno = static_cast<int>(fault.value);
    return true;
  }
  return false;
}

bool IsTorn() {
  const Plan& plan = ThePlan();
  const int64_t call = plan.counter->load();
  return std::any_of(plan.faults.begin(), plan.faults.end(),
                     [&](const Fault& fault) { return fault.kind == Kind::kTear && fault.first == call; });
}

template <typename Function, typename... Arguments>
int OnPaths(const char* name, bool disturbed, Arguments... arguments) {
  if (disturbed && Disturb()) return -1;
  return Next<Function>(name)(arguments...);
}

int Opened(const char* name, const char* path, int flags, mode_t mode) {
  const bool below = IsBelow(path);
  if (below && (flags & O_CREAT) != 0 && Disturb()) return -1;
  const int descriptor = Next<int(const char*, int, ...)>(name)(path, flags, mode);
  Watch(descriptor, below);
  return descriptor;
}

mode_t ModeOf(int flags, va_list& list) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(list, unsigned)) : 0;
}

void ShiftClock(int64_t& seconds) {
  const Plan& plan = ThePlan();
  for (const Fault& fault : plan.faults) {
    if (fault.kind == Kind::kClock && plan.counter->load() >= fault.first) seconds += fault.value;
  }
}

}  // namespace

#define LATTICE_OPEN(name)                     \
  int name(const char* path, int flags, ...) { \
    va_list list;                              \
    va_start(list, flags);                     \
    const mode_t mode = ModeOf(flags, list);   \
    va_end(list);                              \
    return Opened(#name, path, flags, mode);   \
  }

extern "C" {

LATTICE_OPEN(open)
LATTICE_OPEN(open64)

int close(int descriptor) {
  Watch(descriptor, false);
  return Next<int(int)>("close")(descriptor);
}

ssize_t write(int descriptor, const void* data, size_t size) {
  const auto next = Next<ssize_t(int, const void*, size_t)>("write");
  if (!IsWatched(descriptor)) return next(descriptor, data, size);
  if (IsTorn() && next(descriptor, data, size / 2) < 0) return -1;
  return Disturb() ? -1 : next(descriptor, data, size);
}

ssize_t pwrite(int descriptor, const void* data, size_t size, off_t offset) {
  if (IsWatched(descriptor) && Disturb()) return -1;
  return Next<ssize_t(int, const void*, size_t, off_t)>("pwrite")(descriptor, data, size, offset);
}

int fsync(int descriptor) { return OnPaths<int(int)>("fsync", IsWatched(descriptor), descriptor); }
int ftruncate(int descriptor, off_t size) noexcept {
  return OnPaths<int(int, off_t)>("ftruncate", IsWatched(descriptor), descriptor, size);
}
int rename(const char* from, const char* to) noexcept {
  return OnPaths<int(const char*, const char*)>("rename", IsBelow(to), from, to);
}
int unlink(const char* path) noexcept { return OnPaths<int(const char*)>("unlink", IsBelow(path), path); }
int rmdir(const char* path) noexcept { return OnPaths<int(const char*)>("rmdir", IsBelow(path), path); }
int mkdir(const char* path, mode_t mode) noexcept {
  return OnPaths<int(const char*, mode_t)>("mkdir", IsBelow(path), path, mode);
}
int symlink(const char* target, const char* path) noexcept {
  return OnPaths<int(const char*, const char*)>("symlink", IsBelow(path), target, path);
}
int link(const char* existing, const char* path) noexcept {
  return OnPaths<int(const char*, const char*)>("link", IsBelow(path), existing, path);
}

int clock_gettime(clockid_t clock, struct timespec* now) noexcept {
  const int failed = Next<int(clockid_t, struct timespec*)>("clock_gettime")(clock, now);
  if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) ShiftClock(now->tv_sec);
  return failed;
}
int gettimeofday(struct timeval* __restrict now, void* __restrict zone) noexcept {
  const int failed = Next<int(struct timeval*, void*)>("gettimeofday")(now, zone);
  if (failed == 0) ShiftClock(now->tv_sec);
  return failed;
}
time_t time(time_t* out) noexcept {
  time_t now = Next<time_t(time_t*)>("time")(nullptr);
  ShiftClock(now);
  if (out != nullptr) *out = now;
  return now;
}

}  // extern "C"
