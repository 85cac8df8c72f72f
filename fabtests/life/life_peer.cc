// An endpoint in a separate process that executes its driver's commands, one per line. It makes progress all
// the time, like an application that polls. If LIFE_DOZES is set, it sleeps instead while nothing arrives. It
// uses only libfabric's interface.
//
//   peer HEX                  adds an address; answered "peer <handle>"
//   post <id> KIND SIZE <handle>   begins an operation: send, recv (directed), any (from any sender), write, read, atomic
//   keep N SIZE               that many receives from any sender stay posted, for checked messages of at most SIZE bytes; each
//                             that comes is reported: "got <seed> <size>"
//   say <id> SIZE <handle> SEED      sends a checked message: all its bytes follow from the seed
//   put <id> SIZE <handle> SEED PLACE   writes such bytes to that place of the peer's region, reads them back and compares
//   volley <handle> SERVES    each message that comes is answered by one to this peer; with 1 it sends the first. "volleys" tells
//                             how many have come: "volleys <count>"
//   add <id> <handle>         adds one to a word of the peer's region; "sum" tells this side's: "sum <value>"
//   fork live|close|exec|use  a child that lives on, closes what it inherited and ends, executes a
//                             program, or uses what it inherited; answered "child <pid>"; the child says "used <error>"
//   exec                      executes another program, which lives on
//   quit                      closes everything
//
// What happens is reported by lines: "name <hex>" in the beginning, "end <id> <error> <ns> <text>" of an
// operation, "lost <error> <ns> <text>" of an event. <ns> is the monotonic clock, which all processes of a
// host share.
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_cluster.h>
#include <rdma/fi_rma.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "message_endpoint.h"

namespace {

using fabtests::MessageEndpoint;
using fabtests::must;

constexpr std::size_t kRegionBytes = 10 << 20;
constexpr std::uint64_t kKey = 1;
constexpr std::size_t kPlaceBytes = 96 * 1024;  // of puts, behind the word of sums
constexpr unsigned kChildSeconds = 60;          // the driver ends it sooner

long long now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000ll + now.tv_nsec;
}

void say(const std::string& line) {
  const std::string whole = line + "\n";
  if (write(STDOUT_FILENO, whole.data(), whole.size()) < 0) std::exit(1);
}

/// Byte `at` of what follows from a seed; the first eight are the seed.
unsigned char checked_byte(std::uint64_t seed, std::size_t at) {
  if (at < sizeof seed) return static_cast<unsigned char>(seed >> 8 * at);
  const std::uint64_t mixed = (seed + at / 8) * 0x9E3779B97F4A7C15u;
  return static_cast<unsigned char>(mixed >> 8 * (at % 8));
}

struct Operation {
  enum class Kind { plain, checked_receive, put, put_read_back, volley };

  fi_context context{};  ///< first: libfabric hands it back
  std::string id;
  Kind kind = Kind::plain;
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  unsigned losses = 0;  ///< that had been reported when it began
  std::vector<unsigned char> bytes;
  std::list<Operation>::iterator place;

  void fill() {
    for (std::size_t at = 0; at < bytes.size(); ++at) bytes[at] = checked_byte(seed, at);
  }
  /// The first wrong byte; the size if there is none.
  std::size_t first_wrong(std::size_t size) const {
    std::size_t at = 0;
    while (at < size && bytes[at] == checked_byte(seed, at)) ++at;
    return at;
  }
  void check(std::size_t size) const {
    const std::size_t at = first_wrong(size);
    if (at == size) return;
    say("wrong byte " + std::to_string(at) + " of " + std::to_string(size) + " of seed " +
        std::to_string(seed));
    std::exit(1);
  }
};

bool dozes() { return std::getenv("LIFE_DOZES") != nullptr; }

class LifePeer : public MessageEndpoint {
 public:
  explicit LifePeer(const char* port)
      : MessageEndpoint(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV, port,
                        dozes() ? FI_WAIT_FD : FI_WAIT_NONE) {
    fi_eq_attr eq{};
    must(fi_eq_open(fabric_, &eq, &eq_, nullptr), "fi_eq_open");
    must(fi_ep_bind(endpoint_, &eq_->fid, 0), "fi_ep_bind");
    must(fi_enable(endpoint_), "fi_enable");
    constexpr std::uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;
    must(fi_mr_reg(domain_, region_.data(), region_.size(), access, 0, kKey, 0, &mr_, nullptr), "fi_mr_reg");
  }

  void close() {
    must(fi_close(&mr_->fid), "fi_close");
    close_endpoint();
    for (fid* object : {&eq_->fid, &fabric_->fid}) must(fi_close(object), "fi_close");
  }

  void post(const std::string& id, const std::string& kind, std::size_t size, fi_addr_t peer) {
    Operation& operation = add(id, Operation::Kind::plain, 0);
    post_patiently(operation, [&] { return begin(kind, size, peer, &operation.context); });
  }

  void keep(int count, std::size_t size) {
    for (int i = 0; i < count; ++i) {
      Operation& kept = add("kept", Operation::Kind::checked_receive, size);
      keep_posted(kept);
    }
  }

  void volley(fi_addr_t peer, bool serves) {
    Operation& receive = add("volley", Operation::Kind::volley, 8);
    receive.peer = peer;
    keep_posted(receive);
    if (serves) answer(receive);
  }
  /// Sleeps until an order comes, or a completion may be there. Returns false if it must not sleep.
  bool sleep() {
    fid* const queue = &cq_->fid;
    int descriptor = -1;
    if (!dozes() || fi_trywait(fabric_, const_cast<fid**>(&queue), 1) != 0) return false;
    must(fi_control(queue, FI_GETWAIT, &descriptor), "fi_control");
    pollfd both[] = {{STDIN_FILENO, POLLIN, 0}, {descriptor, POLLIN, 0}};
    return poll(both, 2, -1) > 0;
  }

  std::uint64_t volleys() const { return volleys_; }
  bool volleys_are_on() const { return volleys_ != 0; }

  void send_checked(const std::string& id, std::size_t size, fi_addr_t peer, std::uint64_t seed) {
    Operation& message = add(id, Operation::Kind::plain, size);
    message.seed = seed;
    message.fill();
    post_patiently(message, [&] {
      return fi_send(endpoint_, message.bytes.data(), size, nullptr, peer, &message.context);
    });
  }

  void put(const std::string& id, std::size_t size, fi_addr_t peer, std::uint64_t seed, std::size_t place) {
    Operation& put = add(id, Operation::Kind::put, size);
    put.seed = seed;
    put.peer = peer;
    put.losses = losses_;
    put.offset = kPlaceBytes * (1 + place);
    put.fill();
    post_patiently(put, [&] {
      return fi_write(endpoint_, put.bytes.data(), size, nullptr, peer, put.offset, kKey, &put.context);
    });
  }

  void add_one(const std::string& id, fi_addr_t peer) {
    static std::uint64_t one = 1;
    Operation& sum = add(id, Operation::Kind::plain, 0);
    post_patiently(sum, [&] {
      return fi_atomic(endpoint_, &one, 1, nullptr, peer, 0, kKey, FI_UINT64, FI_SUM, &sum.context);
    });
  }

  std::uint64_t sum() const {
    std::uint64_t value;
    std::memcpy(&value, region_.data(), sizeof value);
    return value;
  }

  /// The endpoint's error when a process that only inherited it uses it.
  long use() { return begin("send", 8, 0, nullptr); }

  /// True if anything arrived.
  bool progress() {
    bool any = false;
    if (!refused_.empty()) post_refused();
    fi_cq_msg_entry entry{};
    const long got = fi_cq_read(cq_, &entry, 1);
    if (got == 1) complete(entry.op_context, entry.len);
    if (got == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      must(fi_cq_readerr(cq_, &error, 0), "fi_cq_readerr");
      end(error.op_context, error.err, fi_cq_strerror(cq_, error.prov_errno, error.err_data, nullptr, 0));
    }
    any |= got == 1 || got == -FI_EAVAIL;
    return take_event() || any;
  }

 private:
  bool take_event() {
    unsigned char event[sizeof(fi_eq_cm_entry) + sizeof(fi_cluster_peer_lost)];
    std::uint32_t kind = 0;
    if (fi_eq_read(eq_, &kind, event, sizeof event, 0) == static_cast<ssize_t>(sizeof event) &&
        kind == FI_SHUTDOWN) {
      fi_cluster_peer_lost lost;
      std::memcpy(&lost, event + sizeof(fi_eq_cm_entry), sizeof lost);
      ++losses_;
      say("lost " + std::to_string(lost.err) + " " + std::to_string(now_ns()) + " " + lost.cause);
      return true;
    }
    return false;
  }

  long begin(const std::string& kind, std::size_t size, fi_addr_t peer, void* context) {
    if (kind == "send") return fi_send(endpoint_, region_.data(), size, nullptr, peer, context);
    if (kind == "recv") return fi_recv(endpoint_, place_.data(), size, nullptr, peer, context);
    if (kind == "any") return fi_recv(endpoint_, place_.data(), size, nullptr, FI_ADDR_UNSPEC, context);
    if (kind == "write") return fi_write(endpoint_, place_.data(), size, nullptr, peer, 0, kKey, context);
    if (kind == "read") return fi_read(endpoint_, place_.data(), size, nullptr, peer, 0, kKey, context);
    if (kind == "atomic")
      return fi_atomic(endpoint_, place_.data(), 1, nullptr, peer, 0, kKey, FI_UINT64, FI_SUM, context);
    std::fprintf(stderr, "life_peer: no operation is called %s\n", kind.c_str());
    std::exit(1);
  }

  /// One that is refused for want of memory is posted later.
  void keep_posted(Operation& kept) {
    const long status =
        fi_recv(endpoint_, kept.bytes.data(), kept.bytes.size(), nullptr, FI_ADDR_UNSPEC, &kept.context);
    if (status == -FI_ENOMEM || status == -FI_EAGAIN) {
      refused_.push_back(&kept);
    } else {
      must(status, "fi_recv");
    }
  }
  void post_refused() {
    for (Operation* kept : std::exchange(refused_, {})) keep_posted(*kept);
  }

  void answer(const Operation& volley) {
    must(fi_inject(endpoint_, volley.bytes.data(), volley.bytes.size(), volley.peer), "fi_inject");
  }

  template <typename Post>
  void post_patiently(Operation& operation, Post&& post_it) {
    long status;
    while ((status = post_it()) == -FI_EAGAIN) progress();
    if (status != 0) end(&operation, static_cast<int>(-status), "refused");
  }

  Operation& add(const std::string& id, Operation::Kind kind, std::size_t size) {
    operations_.emplace_back();
    Operation& operation = operations_.back();
    operation.id = id;
    operation.kind = kind;
    operation.bytes.resize(size);
    operation.place = std::prev(operations_.end());
    return operation;
  }

  static Operation& of(void* context) { return *static_cast<Operation*>(context); }

  void complete(void* context, std::size_t size) {
    Operation& operation = of(context);
    if (operation.kind == Operation::Kind::checked_receive) {
      std::memcpy(&operation.seed, operation.bytes.data(), sizeof operation.seed);
      operation.check(size);
      say("got " + std::to_string(operation.seed) + " " + std::to_string(size));
      keep_posted(operation);
    } else if (operation.kind == Operation::Kind::volley) {
      ++volleys_;
      keep_posted(operation);
      answer(operation);
    } else if (operation.kind == Operation::Kind::put) {
      operation.kind = Operation::Kind::put_read_back;
      std::fill(operation.bytes.begin(), operation.bytes.end(), 0);
      post_patiently(operation, [&] {
        return fi_read(endpoint_, operation.bytes.data(), operation.bytes.size(), nullptr, operation.peer,
                       operation.offset, kKey, context);
      });
    } else {
      const bool read_back = operation.kind == Operation::Kind::put_read_back;
      if (read_back && of_two_lives(operation))
        return end(context, FI_ECONNRESET, "read back from the next life of its target");
      if (read_back) operation.check(operation.bytes.size());
      end(context, 0, "");
    }
  }

  /// The process that got the put may have ended since; then the read went to its successor, which lacks the
  /// bytes.
  bool of_two_lives(const Operation& put) {
    if (put.first_wrong(put.bytes.size()) == put.bytes.size()) return false;
    while (take_event()) {
    }
    return put.losses != losses_;
  }

  void end(void* context, int error, const std::string& text) {
    Operation& operation = of(context);
    if (operation.kind ==
        Operation::Kind::checked_receive) {  // its sender has died in the midst of a message
      keep_posted(operation);
      return;
    }
    say("end " + operation.id + " " + std::to_string(error) + " " + std::to_string(now_ns()) + " " + text);
    operations_.erase(operation.place);
  }

  fid_eq* eq_ = nullptr;
  fid_mr* mr_ = nullptr;
  std::list<Operation> operations_;
  unsigned losses_ = 0;
  std::uint64_t volleys_ = 0;
  std::vector<Operation*> refused_;  ///< receives that are to stay posted
  std::vector<unsigned char> region_ = std::vector<unsigned char>(kRegionBytes);
  std::vector<unsigned char> place_ = std::vector<unsigned char>(kRegionBytes);
};

void execute_sleep() { execlp("sleep", "sleep", std::to_string(kChildSeconds).c_str(), nullptr); }

/// The child ends here.
[[noreturn]] void be_child(LifePeer& peer, const std::string& what) {
  if (what == "use") say("used " + std::to_string(-peer.use()));
  if (what == "close") peer.close();
  if (what == "live") sleep(kChildSeconds);
  if (what == "exec") execute_sleep();
  _exit(0);
}

void fork_child(LifePeer& peer, const std::string& what) {
  const pid_t child = fork();
  must(child < 0 ? -errno : 0, "fork");
  if (child == 0) be_child(peer, what);
  say("child " + std::to_string(child));
}

/// False after the last command.
bool obey(LifePeer& peer, const std::string& line) {
  std::istringstream words(line);
  std::string order, id, kind;
  std::size_t size = 0;
  fi_addr_t to = 0;
  words >> order;
  if (order == "peer") {
    words >> id;
    say("peer " + std::to_string(peer.insert(id)));
  } else if (order == "post") {
    words >> id >> kind >> size >> to;
    peer.post(id, kind, size, to);
  } else if (order == "keep") {
    int count = 0;
    words >> count >> size;
    peer.keep(count, size);
  } else if (order == "say" || order == "put") {
    std::uint64_t seed = 0;
    std::size_t place = 0;
    words >> id >> size >> to >> seed >> place;
    order == "say" ? peer.send_checked(id, size, to, seed) : peer.put(id, size, to, seed, place);
  } else if (order == "volley") {
    bool serves = false;
    words >> to >> serves;
    peer.volley(to, serves);
  } else if (order == "volleys") {
    say("volleys " + std::to_string(peer.volleys()));
  } else if (order == "add") {
    words >> id >> to;
    peer.add_one(id, to);
  } else if (order == "sum") {
    say("sum " + std::to_string(peer.sum()));
  } else if (order == "fork") {
    words >> kind;
    fork_child(peer, kind);
  } else if (order == "exec") {
    execute_sleep();
  } else {
    return false;
  }
  return true;
}

}  // namespace

int main(int count, char** words) {
  // Where its driver lets it run short of memory, this program itself waits for some.
  std::set_new_handler([] { usleep(1000); });
  LifePeer peer(count > 1 ? words[1] : nullptr);
  say("name " + peer.name());
  std::string input;
  for (;;) {
    pollfd orders{STDIN_FILENO, POLLIN, 0};
    const bool busy = peer.progress() || peer.sleep();
    if (poll(&orders, 1, busy || peer.volleys_are_on() ? 0 : 1) <= 0) continue;
    char bytes[4096];
    const ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
    if (got <= 0) return 0;
    input.append(bytes, static_cast<std::size_t>(got));
    for (std::size_t end; (end = input.find('\n')) != std::string::npos; input.erase(0, end + 1)) {
      if (obey(peer, input.substr(0, end))) continue;
      peer.close();
      return 0;
    }
  }
}
