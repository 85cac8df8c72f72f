// Members of a ring group that join, leave and are killed while all of them exchange checked messages with a
// process of another node.
//
//   ring_chaos serve
//       Says "name HEX". Answers each message with the same bytes.
//   ring_chaos members COUNT SECONDS EVENT_MS SEED NAME
//       Keeps COUNT processes with an endpoint each. Every EVENT_MS milliseconds some join, two are killed at
//       the same time, or one leaves. While fewer than half of them have had their first answer, nothing
//       happens: a machine with few processors starts fewer than 100 processes a second. At the end it says
//       "members N": N members live and work. When its input ends, it kills them and says what it measured.
//
// Exit status 1, with the reason: a byte is wrong, a message is not answered, or a member does not work.
//
// A process is never in a message for longer than the time in which its frames are missing. So the recovery
// time of an event is the longest time that a message took which was under way at the event or began in the
// 20 ms after it. The longest of so many messages takes long even without an event. Therefore the report has
// the same figure for times before the first event.
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "message_endpoint.h"

namespace {

using fabtests::MessageEndpoint;
using fabtests::must;

constexpr std::size_t kBiggest = 60000;
constexpr std::size_t kSizes[] = {72, 72, 200, 700, 1400, 4000, kBiggest};
constexpr int kServerReceives = 128;
constexpr long long kMillisecond = 1'000'000;
constexpr long long kHang = 30'000 * kMillisecond;
constexpr long long kHangAtStart = 90'000 * kMillisecond;  ///< a member may wait for its ring for a minute
constexpr long long kAfter = 20 * kMillisecond;
constexpr long long kQuiet = 3'000 * kMillisecond;  ///< before the first event
constexpr unsigned kPauseMax = 20'000;              ///< microseconds between two messages of a member
constexpr int kPriority = -15;
constexpr std::size_t kSamplesMax = std::size_t{1} << 22;

long long now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000ll + now.tv_nsec;
}

/// The beginning of each message. The other bytes follow from it.
struct Head {
  char name[56];  ///< of the member, to which the answer goes
  std::uint64_t seed;
};

unsigned char checked_byte(std::uint64_t seed, std::size_t at) {
  return static_cast<unsigned char>(((seed + at / 8) * 0x9E3779B97F4A7C15u) >> 8 * (at % 8));
}

void fill(std::vector<unsigned char>& bytes, const Head& head) {
  std::memcpy(bytes.data(), &head, sizeof head);
  for (std::size_t at = sizeof head; at < bytes.size(); ++at) bytes[at] = checked_byte(head.seed, at);
}

Head check(const unsigned char* bytes, std::size_t size) {
  Head head;
  std::memcpy(&head, bytes, sizeof head);
  for (std::size_t at = size < sizeof head ? 0 : sizeof head; at < size; ++at) {
    if (size >= sizeof head && bytes[at] == checked_byte(head.seed, at)) continue;
    std::fprintf(stderr, "byte %zu of %zu is wrong\n", at, size);
    std::exit(1);
  }
  return head;
}

class Endpoint : public MessageEndpoint {
 public:
  Endpoint() : MessageEndpoint(FI_MSG, nullptr, FI_WAIT_UNSPEC) { must(fi_enable(endpoint_), "fi_enable"); }
  void close() {
    close_endpoint();
    must(fi_close(&fabric_->fid), "fi_close");
  }

 protected:
  /// Waits for a completion; false if it is an error, which `error` then describes.
  bool await(fi_cq_msg_entry& entry, fi_cq_err_entry& error) {
    for (;;) {
      const long got = fi_cq_sread(cq_, &entry, 1, nullptr, 100);
      if (got == 1) return true;
      if (got == -FI_EAGAIN || got == -FI_EINTR) continue;
      if (got != -FI_EAVAIL) must(got, "fi_cq_sread");
      must(fi_cq_readerr(cq_, &error, 0), "fi_cq_readerr");
      return false;
    }
  }
};

class Server : public Endpoint {
 public:
  [[noreturn]] void serve() {
    for (int i = 0; i < kServerReceives; ++i) post(*new Buffer);
    for (;;) {
      fi_cq_msg_entry entry{};
      fi_cq_err_entry error{};
      if (await(entry, error)) {
        take(*static_cast<Buffer*>(entry.op_context), entry.len);
      } else {
        post(*static_cast<Buffer*>(error.op_context));  // its member is dead
      }
    }
  }

 private:
  struct Buffer {
    fi_context context{};  ///< first: libfabric hands it back
    bool answers = false;
    std::vector<unsigned char> bytes = std::vector<unsigned char>(kBiggest);
  };

  void post(Buffer& buffer) {
    buffer.answers = false;
    must(fi_recv(endpoint_, buffer.bytes.data(), buffer.bytes.size(), nullptr, FI_ADDR_UNSPEC,
                 &buffer.context),
         "fi_recv");
  }

  void take(Buffer& buffer, std::size_t size) {
    if (buffer.answers) return post(buffer);
    const Head head = check(buffer.bytes.data(), size);
    const std::string name(head.name, strnlen(head.name, sizeof head.name));
    const auto known = members_.find(name);
    const fi_addr_t member = known != members_.end() ? known->second : members_[name] = insert(name);
    buffer.answers = true;
    long status;
    while ((status = fi_send(endpoint_, buffer.bytes.data(), size, nullptr, member, &buffer.context)) ==
           -FI_EAGAIN)
      fi_cq_read(cq_, nullptr, 0);
    if (status != 0) post(buffer);
  }

  std::map<std::string, fi_addr_t> members_;
};

struct Sample {
  long long begin, end;
};

/// What the processes of a node share.
struct Shared {
  std::atomic<std::size_t> samples;
  Sample sample[kSamplesMax];
};

struct Place {
  std::atomic<long long> waits_since;  ///< when the message under way began; 0: none is
  std::atomic<unsigned> answered;      ///< messages of this process
  std::atomic<bool> leave;
};

/// The process of a member.
class Member : public Endpoint {
 public:
  Member(const std::string& server, std::uint64_t seed, Place& place, Shared& shared)
      : place_(place), shared_(shared), random_(seed), seed_(seed << 32), server_(insert(server)) {
    const std::string own = name();
    std::memset(head_.name, 0, sizeof head_.name);
    if (own.size() > sizeof head_.name) must(-FI_ETOOSMALL, "the name");
    own.copy(head_.name, sizeof head_.name);
  }

  void run() {
    while (!place_.leave) {
      exchange();
      usleep(static_cast<unsigned>(random_() % kPauseMax));
    }
  }

 private:
  void exchange() {
    head_.seed = ++seed_;
    sent_.resize(kSizes[random_() % std::size(kSizes)]);
    fill(sent_, head_);
    std::fill(got_.begin(), got_.end(), 0);
    must(fi_recv(endpoint_, got_.data(), got_.size(), nullptr, FI_ADDR_UNSPEC, &receive_), "fi_recv");
    const long long begin = now_ns();
    if (place_.answered != 0) place_.waits_since = begin;
    long status;
    while ((status = fi_send(endpoint_, sent_.data(), sent_.size(), nullptr, server_, &send_)) == -FI_EAGAIN)
      fi_cq_read(cq_, nullptr, 0);
    must(status, "fi_send");
    for (int left = 2; left != 0; --left) {
      fi_cq_msg_entry entry{};
      fi_cq_err_entry error{};
      if (!await(entry, error)) must(-error.err, "a message of a member");
      if (entry.op_context == &receive_ &&
          (entry.len != sent_.size() || std::memcmp(got_.data(), sent_.data(), entry.len) != 0)) {
        std::fprintf(stderr, "a member got another answer\n");
        std::exit(1);
      }
    }
    const long long end = now_ns();
    if (++place_.answered == 1) return;  // first contact is no recovery
    const std::size_t at = shared_.samples++;
    if (at < kSamplesMax) shared_.sample[at] = {begin, end};
    place_.waits_since = 0;
  }

  Place& place_;
  Shared& shared_;
  std::minstd_rand random_;
  std::uint64_t seed_;
  fi_addr_t server_;
  Head head_{};
  std::vector<unsigned char> sent_;
  std::vector<unsigned char> got_ = std::vector<unsigned char>(kBiggest);
  fi_context receive_{}, send_{};
};

template <typename Type>
Type* shared_memory(std::size_t count) {
  void* const memory =
      mmap(nullptr, sizeof(Type) * count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) must(-errno, "mmap");
  return static_cast<Type*>(memory);
}

class Crowd {
 public:
  Crowd(std::size_t count, std::uint64_t seed, std::string server)
      : server_(std::move(server)), random_(static_cast<unsigned>(seed)), members_(count) {
    Place* const places = shared_memory<Place>(count);
    for (std::size_t i = 0; i < count; ++i) members_[i].place = &places[i];
  }

  /// Events come at their times although the members take all processors.
  void run(long long seconds, long long every) {
    setpriority(PRIO_PROCESS, 0, kPriority);
    for (Process& each : members_) start(each);
    await_all();
    pass(kQuiet);
    events_begin_ = now_ns();
    const long long end = events_begin_ + seconds * 1000 * kMillisecond;
    for (long long next = now_ns(); now_ns() < end; next += every) {
      pass(next - now_ns());
      if (2 * works() >= members_.size()) event();
    }
    for (Process& each : members_) {
      if (each.pid == 0) start(each);
    }
    await_all();
    events_end_ = end;
  }

  std::size_t working() const {
    return static_cast<std::size_t>(
        std::count_if(members_.begin(), members_.end(), [](const Process& each) { return each.pid != 0; }));
  }

  std::size_t works() const {
    return static_cast<std::size_t>(std::count_if(
        members_.begin(), members_.end(), [](const Process& each) { return each.pid != 0 && each.works; }));
  }

  void kill_all() {
    for (Process& each : members_) kill_one(each);
    while (wait(nullptr) > 0) {
    }
  }

  void report() {
    const std::size_t count = std::min<std::size_t>(shared_->samples, kSamplesMax);
    std::vector<long long> quiet, busy;
    for (std::size_t i = 0; i < count; ++i) {
      const auto [begin, end] = shared_->sample[i];
      (end < events_begin_ ? quiet : busy).push_back(end - begin);
    }
    std::vector<long long> before;
    for (long long at = events_begin_ - kQuiet; at < events_begin_ - kAfter; at += kAfter)
      before.push_back(at);
    std::vector<long long> recovery = longest(killed_at_, count), without = longest(before, count);
    std::printf("events: %zu times two killed, %zu left, %zu joined, in %.1f s\n", killed_at_.size(), left_,
                joined_, static_cast<double>(events_end_ - events_begin_) / 1e9);
    say("a message without events", quiet);
    say("a message under events", busy);
    say("recovery after two were killed", recovery);
    say("the same at times without events", without);
    say("from fork to the first answer", joining_);
  }

 private:
  struct Process {
    pid_t pid = 0;
    long long began = 0;
    bool works = false;  ///< a message was answered
    bool leaves = false;
    Place* place = nullptr;
  };

  /// For each of these times, in their order, how long the longest message took that was under way then or
  /// began soon after.
  std::vector<long long> longest(const std::vector<long long>& times, std::size_t count) const {
    std::vector<long long> found(times.size(), 0);
    for (std::size_t i = 0; i < count; ++i) {
      const auto [begin, end] = shared_->sample[i];
      auto at = std::upper_bound(times.begin(), times.end(), begin - kAfter);
      for (; at != times.end() && *at < end; ++at) {
        long long& most = found[static_cast<std::size_t>(at - times.begin())];
        most = std::max(most, end - begin);
      }
    }
    return found;
  }

  static void say(const char* what, std::vector<long long>& times) {
    if (times.empty()) return;
    std::sort(times.begin(), times.end());
    const auto at = [&](double part) {
      return static_cast<double>(
                 times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))]) /
             1e6;
    };
    std::printf("%s: %zu, median %.2f ms, 99 %% %.2f ms, worst %.2f ms\n", what, times.size(), at(0.5),
                at(0.99), at(1));
  }

  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "ring_chaos: %s\n", what);
    std::exit(1);
  }

  void start(Process& process) {
    process.place->waits_since = 0;
    process.place->answered = 0;
    process.place->leave = false;
    process.works = process.leaves = false;
    process.began = now_ns();
    const std::uint64_t seed = ++serial_;
    process.pid = fork();
    if (process.pid < 0) must(-errno, "fork");
    if (process.pid != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpriority(PRIO_PROCESS, 0, priority_);
    Member member(server_, seed, *process.place, *shared_);
    member.run();
    member.close();
    _exit(0);
  }

  /// Two die, or one leaves and one joins, or two join: most often what brings back the wanted number.
  void event() {
    const std::size_t most = members_.size();
    if (working() + 2 > most) {
      if (random_() % 4 == 0) return leave();
      Process& one = any(true);
      kill_one(one);
      Process& other = any(true);
      kill_one(other);
      killed_at_.push_back(now_ns());
      return;
    }
    for (int i = 0; i < 2; ++i) {
      start(any(false));
      ++joined_;
    }
  }

  void leave() {
    Process& process = any(true);
    if (process.leaves) return;
    process.leaves = true;
    process.place->leave = true;
    ++left_;
  }

  /// Any member that lives, or any that does not.
  Process& any(bool lives) {
    for (;;) {
      Process& process = members_[random_() % members_.size()];
      if ((process.pid != 0) == lives) return process;
    }
  }

  static void kill_one(Process& process) {
    if (process.pid == 0) return;
    kill(process.pid, SIGKILL);
    process.pid = 0;
  }

  /// Looks after the members for this time.
  void pass(long long time) {
    const long long end = now_ns() + time;
    do {
      look();
      usleep(500);
    } while (now_ns() < end);
  }

  void await_all() {
    const auto works = [](const Process& each) { return each.pid != 0 && each.works && !each.leaves; };
    while (!std::all_of(members_.begin(), members_.end(), works)) {
      pass(kMillisecond);
      for (Process& each : members_) {
        if (each.pid == 0) start(each);
      }
    }
  }

  void look() {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      for (Process& each : members_) {
        if (each.pid != pid) continue;
        if (!each.leaves || status != 0) fail("a member has ended by itself");
        each.pid = 0;
      }
    }
    const long long now = now_ns();
    for (Process& each : members_) {
      if (each.pid == 0) continue;
      if (!each.works && each.place->answered != 0) {
        each.works = true;
        joining_.push_back(now - each.began);
      }
      const long long waits_since = each.works ? each.place->waits_since.load() : each.began;
      if (waits_since != 0 && now - waits_since > (each.works ? kHang : kHangAtStart))
        fail(each.works ? "a message is not answered" : "a member does not work");
    }
  }

  std::string server_;
  std::minstd_rand random_;
  std::vector<Process> members_;
  Shared* shared_ = shared_memory<Shared>(1);
  std::uint64_t serial_ = 0;
  int priority_ = getpriority(PRIO_PROCESS, 0);  ///< of the members
  std::size_t left_ = 0, joined_ = 0;
  long long events_begin_ = 0, events_end_ = 0;
  std::vector<long long> killed_at_, joining_;
};

}  // namespace

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (count == 2 && std::strcmp(words[1], "serve") == 0) {
    Server server;
    std::printf("name %s\n", server.name().c_str());
    server.serve();
  }
  if (count != 7) return 2;
  Crowd crowd(std::strtoul(words[2], nullptr, 10), std::strtoul(words[5], nullptr, 10), words[6]);
  crowd.run(std::strtol(words[3], nullptr, 10), std::strtol(words[4], nullptr, 10) * kMillisecond);
  std::printf("members %zu\n", crowd.working());
  while (std::getchar() != EOF) {
  }
  crowd.kill_all();
  crowd.report();
  return 0;
}
