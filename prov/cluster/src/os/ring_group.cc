#include "os/ring_group.h"

#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/packet_diag.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/end_of_memory.h"
#include "os/cancellation.h"
#include "os/detached_thread.h"
#include "os/interfaces.h"
#include "os/netlink.h"
#include "os/patience.h"
#include "os/port_filter.h"
#include "os/progress_thread.h"
#include "os/ring_steps.h"
#include "os/system_clock.h"

namespace cluster::os {
namespace {

constexpr Duration kLookAgain = 1ms;
/// A process that waits until its socket can enter the fanout group reads the table without the lock. The
/// process takes the lock only once in this number of looks.
constexpr unsigned kLooksPerLock = 50;
constexpr std::size_t kJoinersPerRun = 16;
constexpr std::size_t kProcessesMax = kRingsMax;
/// The rings of the first group may take 1/kMemoryShare of the node's memory, or kGroupBytesMin if that is
/// more. A ring that would exceed this limit gets only one block, as all rings of further groups do.
constexpr std::size_t kMemoryShare = 32;
constexpr std::size_t kGroupBytesMin = 64 * 1024 * 1024;

// The locks of the table's file, as offsets of bytes.
constexpr off_t kTableLock = 0;
constexpr off_t kProgramLocks = 1;  ///< one for each kind of ring
constexpr off_t kProcessLocks = 16;
static_assert(kProgramLocks + static_cast<off_t>(kRingKinds) <= kProcessLocks);

/// The three messages to a process that joins. Each carries one descriptor.
enum class Part : std::uint64_t { door = 1, keeper, table };

/// `wait`: F_SETLKW to wait until the lock is free, or F_SETLK to fail if another process has the lock.
bool set_lock(const Descriptor& file, off_t at, short type, int wait = F_SETLK) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = at;
  lock.l_len = 1;
  const PutOffCancellation off;  // fcntl() is a cancellation point only if it waits
  int result = 0;
  do result = fcntl(file.number(), wait, &lock);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

/// Calls `attempt` until it returns true. Returns false when the patience is over. `progress`: a number that
/// changes when other processes of the group make progress.
template <typename Attempt, typename Progress>
bool await(const Attempt& attempt, const Progress& progress) {
  SystemClock clock;
  Patience patience(clock.now(), progress());
  while (!attempt()) {
    if (patience.over(clock.now(), progress())) return false;
    std::this_thread::sleep_for(kLookAgain);
  }
  return true;
}

/// Returns the number of changes of the table that the program in the kernel includes.
std::uint64_t installed_of(RingList& list) {
  return std::atomic_ref<std::uint64_t>(list.installed).load(std::memory_order_acquire);
}

std::string group_name(int index, unsigned number) {
  const std::string first = "cluster-rings-1/" + std::to_string(index) + "/" + std::to_string(geteuid());
  return number == 0 ? first : first + "/" + std::to_string(number);
}

std::size_t blocks_allowed() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  const auto bytes = static_cast<std::size_t>(std::max(pages, 0L)) * static_cast<std::size_t>(page);
  return std::max(bytes / kMemoryShare, kGroupBytesMin) / kRingBlockBytes;
}

ConstBytes bytes_of(const Part& part) { return std::as_bytes(std::span(&part, 1)); }

int fanout_join(int socket, std::uint32_t id, bool fresh) {
  const std::uint32_t flags = fresh ? PACKET_FANOUT_FLAG_UNIQUEID : 0;
  const std::uint32_t word = (fresh ? 0 : id) | (PACKET_FANOUT_CBPF | flags) << 16;
  return setsockopt(socket, SOL_PACKET, PACKET_FANOUT, &word, sizeof word) == 0 ? 0 : errno;
}

/// Reads the id of the fanout group that `socket` is in. Returns 0 or an errno.
int read_fanout_id(int socket, std::uint32_t& id) {
  std::uint32_t word = 0;
  socklen_t size = sizeof word;
  if (getsockopt(socket, SOL_PACKET, PACKET_FANOUT, &word, &size) != 0) return errno;
  id = word & 0xffff;
  return 0;
}

/// Holds the lock of a table. A process holds this lock for some 100 us. Converts to false if the kernel did
/// not grant the lock.
class TableLock {
 public:
  /// `mutex`: excludes the other threads of this process.
  TableLock(const Descriptor& file, std::mutex& mutex)
      : file_(file), guard_(mutex), held_(set_lock(file_, kTableLock, F_WRLCK, F_SETLKW)) {}
  ~TableLock() {
    if (held_) set_lock(file_, kTableLock, F_UNLCK);
  }
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;
  explicit operator bool() const { return held_; }

 private:
  const Descriptor& file_;
  std::lock_guard<std::mutex> guard_;
  bool held_;
};

const char* const kStopped =
    "another process of this user has locked the table of receive rings for too long (is it stopped, or is "
    "the machine overloaded?)";

/// A group that this process has opened.
struct KnownGroup {
  std::uint64_t name_space;
  int index;
  unsigned number;
  uid_t user;
  pid_t process;  ///< the process that opened the group; a forked child has none of the descriptors
  RingGroup* group;
  unsigned users;
};

std::mutex& known_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

std::vector<KnownGroup>& known_groups() {
  static std::vector<KnownGroup>& all = *new std::vector<KnownGroup>;
  return all;
}

}  // namespace

/// Makes the system calls for the steps of one seat. The destructor closes the sockets that were withdrawn
/// from the keeper. The caller must release the lock of the table before it destroys the object, because each
/// close starts a thread, which takes some time.
class SeatKernel final : public RingKernel {
 public:
  SeatKernel(const RingGroup& group, Descriptor& socket) : group_(group), socket_(socket) {}
  ~SeatKernel() {
    for (Descriptor& each : withdrawn_) close_aside(std::move(each));
  }
  SeatKernel(const SeatKernel&) = delete;
  SeatKernel& operator=(const SeatKernel&) = delete;

  bool lives(std::uint32_t process) override { return group_.lives(process); }
  int open(std::uint64_t) override {
    socket_ = Descriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    return socket_ ? 0 : errno;
  }
  bool inherit(std::uint64_t serial) override {
    socket_ = group_.keeper_.copy_of(serial);
    return static_cast<bool>(socket_);
  }
  int enter_fanout(bool fresh, std::uint32_t& id) override {
    const int error = fanout_join(socket_.number(), id, fresh);
    return error == 0 && fresh ? read_fanout_id(socket_.number(), id) : error;
  }
  std::optional<std::size_t> sockets_in_fanout(std::uint32_t id) override {
    return os::sockets_in_fanout(id);
  }
  int keep(std::uint64_t serial) override { return group_.keeper_.keep(serial, socket_); }
  void withdraw(std::span<const std::uint64_t> serials) override {
    std::vector<Descriptor> more = group_.keeper_.withdraw(serials);
    std::move(more.begin(), more.end(), std::back_inserter(withdrawn_));
  }

 private:
  const RingGroup& group_;
  Descriptor& socket_;
  std::vector<Descriptor> withdrawn_;
};

/// A process must close the file of a group before it opens the file again. The reason is that any close() of
/// a file releases all locks of the process on the file. Therefore the process destroys a group under the
/// mutex.
std::shared_ptr<RingGroup> RingGroup::of_interface(int index, unsigned number, std::string& reason) {
  const std::lock_guard guard(known_mutex());
  std::vector<KnownGroup>& all = known_groups();
  std::erase_if(all, [](const KnownGroup& each) { return each.process != getpid(); });
  KnownGroup wanted{network_namespace(), index, number, geteuid(), getpid(), nullptr, 0};
  auto known = std::find_if(all.begin(), all.end(), [&](const KnownGroup& each) {
    return each.name_space == wanted.name_space && each.index == index && each.number == number &&
           each.user == wanted.user;
  });
  if (known == all.end()) {
    wanted.group = open(index, number, reason).release();
    if (wanted.group == nullptr) return nullptr;
    known = all.insert(all.end(), wanted);
  }
  ++known->users;
  return {known->group, [](RingGroup* group) {
            const std::lock_guard lock(known_mutex());
            std::vector<KnownGroup>& groups = known_groups();
            const auto its = std::find_if(groups.begin(), groups.end(),
                                          [&](const KnownGroup& each) { return each.group == group; });
            if (its == groups.end() || --its->users != 0) return;
            groups.erase(its);
            delete group;
          }};
}

RingGroup::RingGroup(LocalSocket door, RingKeeper keeper, Descriptor file, SharedMemory memory)
    : door_(std::move(door)),
      keeper_(std::move(keeper)),
      file_(std::move(file)),
      memory_(std::make_shared<SharedMemory>(std::move(memory))) {}

std::unique_ptr<RingGroup> RingGroup::open(int index, unsigned number, std::string& reason) {
  std::unique_ptr<RingGroup> group;
  const std::string name = group_name(index, number);
  // An attempt can fail because another process is founding the group at this moment, or because the last
  // process of the group has just ended. In both cases the next attempt can succeed.
  const auto attempt = [&] {
    bool unanswered = false;
    if (LocalSocket member = connect_to_own(name, false, reason)) {
      group = join(member, unanswered, reason);
    } else if (LocalSocket door = listen_as_own(name, reason)) {
      group = found(std::move(door), reason);
    }
    return group != nullptr || unanswered;
  };
  await(attempt, [] { return 0; });
  if (group == nullptr || !group->start(reason)) return nullptr;
  group->blocks_max_ = number == 0 ? blocks_allowed() : 0;
  return group;
}

std::unique_ptr<RingGroup> RingGroup::found(LocalSocket door, std::string& reason) {
  Descriptor file;
  SharedMemory memory = SharedMemory::create(sizeof(RingTable), file, reason);
  int error = 0;
  RingKeeper keeper = RingKeeper::open(error);
  if (!keeper) reason = error_text(error);
  if (!memory || !keeper) return nullptr;
  return std::unique_ptr<RingGroup>(
      new RingGroup(std::move(door), std::move(keeper), std::move(file), std::move(memory)));
}

/// Sets `unanswered` to true if the process at the other end does not answer within
/// Patience::kWithoutProgress, for example because the process is stopped.
std::unique_ptr<RingGroup> RingGroup::join(LocalSocket& member, bool& unanswered, std::string& reason) {
  Descriptor parts[3];
  for (Descriptor& part : parts) {
    std::uint64_t word = 0;
    const auto receive = [&] { return member.receive(std::as_writable_bytes(std::span(&word, 1)), &part); };
    LocalSocket::Receipt receipt = receive();
    if (receipt == LocalSocket::Receipt::nothing) {
      member.wait_for_message(
          std::chrono::duration_cast<std::chrono::milliseconds>(Patience::kWithoutProgress));
      receipt = receive();
    }
    if (receipt != LocalSocket::Receipt::message) {
      unanswered = receipt == LocalSocket::Receipt::nothing;
      reason = "no process of this user with a receive ring answers";
      return nullptr;
    }
  }
  SharedMemory memory = SharedMemory::map(parts[2], sizeof(RingTable), reason);
  if (!memory) return nullptr;
  return std::unique_ptr<RingGroup>(new RingGroup(LocalSocket::of_listener(std::move(parts[0])),
                                                  RingKeeper(std::move(parts[1])), std::move(parts[2]),
                                                  std::move(memory)));
}

/// Takes a number for this process, and begins to answer processes that join.
bool RingGroup::start(std::string& reason) {
  Descriptor none;
  SeatKernel kernel(*this, none);
  const TableLock locked(file_, table_mutex_);
  if (!locked) {
    reason = kStopped;
    return false;
  }
  RingSteps steps(table(), self_, kernel);
  steps.free_dead();
  std::uint32_t number = 1;
  while (number <= kProcessesMax && !set_lock(file_, kProcessLocks + number, F_WRLCK)) ++number;
  if (number > kProcessesMax) {
    reason = kGroupIsFull;
    return false;
  }
  steps.free_dead();  // the previous process with this number may have died after the first call
  int error = 0;
  client_ = start_progress_client(
      [this] {
        answer_joiners();
        return NextWake{NextWake::kUntilReadable, door_.descriptor()};
      },
      error);
  if (client_ == nullptr) {
    reason = error_text(error);
    return false;
  }
  self_ = number;
  return true;
}

void RingGroup::answer_joiners() const {
  std::string reason;
  for (std::size_t i = 0; i < kJoinersPerRun; ++i) {
    const LocalSocket joiner = door_.accept(reason);
    if (!joiner) return;
    if (!joiner.same_user()) continue;
    const bool sent = joiner.send(bytes_of(Part::door), door_.socket(), reason) &&
                      joiner.send(bytes_of(Part::keeper), keeper_.socket(), reason);
    if (sent) joiner.send(bytes_of(Part::table), file_, reason);
  }
}

/// F_GETLK does not report a lock of the calling process, so the function first compares the number with that
/// of this process.
bool RingGroup::lives(std::uint32_t process) const {
  if (process == self_) return true;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = kProcessLocks + static_cast<off_t>(process);
  lock.l_len = 1;
  return fcntl(file_.number(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

std::unique_ptr<RingSeat> RingGroup::take(const std::shared_ptr<RingGroup>& group, RingKind kind,
                                          const SocketAddress& address, const RingLayout& layout,
                                          std::size_t blocks, std::size_t members_max, std::string& reason) {
  auto seat = std::make_unique<RingSeat>(group, kind);
  SeatKernel kernel(*group, seat->socket);
  const TableLock locked(group->file_, group->table_mutex_);
  if (!locked) {
    reason = kStopped;
    return nullptr;
  }
  RingSteps steps(group->table(), group->self_, kernel);
  const std::optional<RingSteps::Taken> taken =
      steps.take(kind, address, layout, blocks, {members_max, group->blocks_max_}, reason);
  if (!taken) return nullptr;
  seat->serial = taken->serial;
  seat->blocks = taken->blocks;
  seat->inherited = taken->inherited;
  return seat;
}

/// If there is no memory for leave(), the place becomes free only when this process ends.
RingSeat::~RingSeat() {
  if (group != nullptr) enough_memory_for([this] { group->leave(*this); });
  close_aside(std::move(socket));
}

bool RingGroup::enter(RingSeat& seat, std::string& reason) {
  RingList& list = table().list(seat.kind);
  reason.clear();
  unsigned looks = 0;
  const auto attempt = [&] {
    const bool looks_only = !list.is_next(seat.serial) && ++looks % kLooksPerLock != 0;
    return !looks_only && (enter_fanout(seat, reason) || !reason.empty());
  };
  if (!seat.inherited && !await(attempt, [&] { return installed_of(list); }))
    reason = "another process of this user takes too long to create its receive ring (is it stopped?)";
  return reason.empty() && install(seat, list, reason);
}

bool RingGroup::readdress(RingSeat& seat, const SocketAddress& address, std::string& reason) {
  reason.clear();
  {
    SeatKernel kernel(*this, seat.socket);
    const TableLock locked(file_, table_mutex_);
    if (!locked) {
      reason = kStopped;
      return false;
    }
    RingSteps(table(), self_, kernel).readdress(seat.kind, seat.serial, address);
  }
  return install(seat, table().list(seat.kind), reason);
}

/// Returns false without a reason if the socket cannot enter yet.
bool RingGroup::enter_fanout(RingSeat& seat, std::string& reason) {
  SeatKernel kernel(*this, seat.socket);
  const TableLock locked(file_, table_mutex_);
  if (!locked) {
    reason = kStopped;
    return false;
  }
  return RingSteps(table(), self_, kernel).enter(seat.kind, seat.serial, reason);
}

/// Waits until the kernel has a program that includes this process's latest change. This process or another
/// one installs the program.
bool RingGroup::install(const RingSeat& seat, RingList& list, std::string& reason) {
  std::uint64_t wanted = 0;
  if (const TableLock locked(file_, table_mutex_); locked) {
    wanted = list.changes;
  } else {
    reason = kStopped;
    return false;
  }
  const std::size_t kind = static_cast<std::size_t>(seat.kind);
  const off_t lock = kProgramLocks + static_cast<off_t>(kind);
  const auto is_installed = [&] { return installed_of(list) >= wanted; };
  const auto attempt = [&] {
    if (is_installed()) return true;
    const std::lock_guard guard(program_mutexes_[kind]);
    if (is_installed()) return true;
    if (!set_lock(file_, lock, F_WRLCK)) return false;
    if (!is_installed()) install_now(seat, list, reason);
    set_lock(file_, lock, F_UNLCK);
    return is_installed() || !reason.empty();
  };
  if (!await(attempt, [&] { return installed_of(list); })) reason = kStopped;
  return reason.empty();
}

void RingGroup::install_now(const RingSeat& seat, RingList& list, std::string& reason) {
  RingProgram next;
  Descriptor none;
  SeatKernel kernel(*this, none);
  if (const TableLock locked(file_, table_mutex_); locked) {
    next = RingSteps(table(), self_, kernel).program(seat.kind);
  } else {
    reason = kStopped;
    return;
  }
  if (const int error = install_spreading(seat.socket.number(), next.program); error != 0) {
    reason =
        "the kernel refuses the BPF program that shares frames among receive rings: " + error_text(error);
    return;
  }
  std::atomic_ref<std::uint64_t>(list.installed).store(next.version, std::memory_order_release);
}

void RingGroup::leave(RingSeat& seat) {
  if (seat.serial == 0) return;
  FilterProgram none = no_frames();
  attach_filter(seat.socket.number(), SO_ATTACH_FILTER, none);
  SeatKernel kernel(*this, seat.socket);
  const TableLock locked(file_, table_mutex_);
  if (!locked) return;  // the place becomes free when this process ends
  RingSteps(table(), self_, kernel).leave(seat.kind, seat.serial);
}

std::optional<std::size_t> sockets_in_fanout(std::uint32_t id) {
  Request<packet_diag_req> request(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP);
  request.body.sdiag_family = AF_PACKET;
  request.body.pdiag_show = PACKET_SHOW_FANOUT;
  std::size_t count = 0;
  const int error = ask(netlink_socket(NETLINK_SOCK_DIAG), request, [&](ConstBytes message) {
    each_attribute_behind<packet_diag_msg>(message, [&](unsigned type, ConstBytes value) {
      std::uint32_t word = 0;  // the id and the type of the fanout group
      if (type != PACKET_DIAG_FANOUT) return;
      read_number(value, word);
      count += (word & 0xffff) == id;
    });
  });
  return error == 0 ? std::optional(count) : std::nullopt;
}

}  // namespace cluster::os
