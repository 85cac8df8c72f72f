// Two endpoints of one process make every call of libfabric that the provider implements, most of them several times, all
// of them in one thread. Each mode judges the calls in its own way:
//
//   every_call stack [BYTES]   a call takes at most so many bytes of stack (default: kStackMax); prints the deepest calls
//   every_call cancelled       the thread is cancelled before the first call; no call may act upon that, since none of
//                              them waits. Then threads are cancelled while they sleep in a call: these must end, and
//                              everything must still work and close.
//
// Options by environment: CALLS_GROUP=ADDRESS joins that multicast group; CALLS_PROGRESS=auto.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_cluster.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(20);
constexpr std::size_t kStackMax = 8 * 1024;
constexpr std::size_t kPainted = 256 * 1024;
constexpr std::size_t kRegionBytes = 1 << 20;

std::atomic<const char*> current{"nothing"};

[[noreturn]] void die(const char* what, long status) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  std::printf("%s (in or after %s): %s\n", what, current.load(),
              status < 0 ? fi_strerror(static_cast<int>(-status)) : "");
  std::fflush(stdout);
  std::_Exit(1);
}

// --- judges ---

/// Null: stacks are not measured.
char* painted = nullptr;
std::map<std::string, std::size_t> depths;  ///< bytes, by call

constexpr char kPaint = 0x5a;

/// Paints the stack below, makes the call, and looks how much paint the call has overwritten.
template <typename Call>
[[gnu::noinline]] std::size_t depth_of(Call& call, long& result) {
  volatile char* const here =
      static_cast<char*>(__builtin_frame_address(0)) - 512;  // this frame ends above that
  for (volatile char* at = painted; at < here; ++at) *at = kPaint;
  result = call();
  const volatile char* at = painted;
  while (at < here && *at == kPaint) ++at;
  return static_cast<std::size_t>(here - at);
}

template <typename Call>
long call(const char* name, Call&& made) {
  current = name;
  long result = 0;
  if (painted == nullptr) {
    result = made();
  } else {
    const std::size_t depth = depth_of(made, result);
    std::size_t& most = depths[name];
    most = std::max(most, depth);
  }
  return result;
}
#define CALL(function, ...) call(#function, [&]() -> long { return function(__VA_ARGS__); })

template <typename Function>
void* run_function(void* function) {
  (*static_cast<Function*>(function))();
  return nullptr;
}

/// Runs `body` in a thread of its own, on a stack whose lowest byte is `stack` unless that is null.
template <typename Body>
void* in_thread(Body body, void* stack = nullptr) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack != nullptr) pthread_attr_setstack(&attributes, stack, kPainted);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, run_function<Body>, &body) != 0) die("pthread_create", 0);
  void* result = nullptr;
  pthread_join(thread, &result);
  return result;
}

// --- what is called ---

void must(const char* what, long status) {
  if (status < 0) die(what, status);
}
#define MUST(function, ...) must(#function, CALL(function, __VA_ARGS__))

struct Fabric {
  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  const char* group = std::getenv("CALLS_GROUP");

  Fabric() {
    fi_info* const hints = fi_allocinfo();
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps =
        FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE | FI_DIRECTED_RECV | FI_SOURCE | FI_RMA_EVENT;
    if (group != nullptr) hints->caps |= FI_MULTICAST;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->fabric_attr->prov_name = strdup("cluster;^ofi_rxm;^ofi_rxd;^ofi_mrail");
    const char* const progress = std::getenv("CALLS_PROGRESS");
    if (progress != nullptr && std::strcmp(progress, "auto") == 0) {
      hints->domain_attr->data_progress = hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
    }
    // In these two calls libfabric itself writes to its log, which is a cancellation point.
    int before = PTHREAD_CANCEL_ENABLE;
    const bool logs = std::getenv("FI_LOG_LEVEL") != nullptr;
    if (logs) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    MUST(fi_getinfo, FI_VERSION(1, 15), nullptr, nullptr, 0, hints, &info);
    fi_freeinfo(hints);
    MUST(fi_fabric, info->fabric_attr, &fabric, nullptr);
    if (logs) pthread_setcancelstate(before, nullptr);
    MUST(fi_domain, fabric, info, &domain, nullptr);
  }
  ~Fabric() {
    must("fi_close of a domain", call("fi_close (domain)", [&] { return fi_close(&domain->fid); }));
    must("fi_close of a fabric", call("fi_close (fabric)", [&] { return fi_close(&fabric->fid); }));
    fi_freeinfo(info);
  }
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
};

class Side {
 public:
  Side(Fabric& on, std::uint64_t region_key, fi_wait_obj wait) : on_(on), key(region_key) {
    fi_eq_attr eq_attributes{};
    eq_attributes.wait_obj = wait;
    MUST(fi_eq_open, on.fabric, &eq_attributes, &eq, nullptr);
    fi_cq_attr cq_attributes{};
    cq_attributes.format = FI_CQ_FORMAT_TAGGED;
    cq_attributes.wait_obj = wait;
    MUST(fi_cq_open, on.domain, &cq_attributes, &cq, nullptr);
    fi_cntr_attr counter_attributes{};
    counter_attributes.wait_obj = wait;
    MUST(fi_cntr_open, on.domain, &counter_attributes, &counter, nullptr);
    fi_av_attr av_attributes{};
    av_attributes.type = FI_AV_TABLE;
    MUST(fi_av_open, on.domain, &av_attributes, &av, nullptr);
    MUST(fi_endpoint, on.domain, on.info, &endpoint, nullptr);
    for (auto [object, flags] : {std::pair<fid*, std::uint64_t>{&av->fid, 0},
                                 {&cq->fid, FI_SEND | FI_RECV},
                                 {&counter->fid, FI_SEND | FI_WRITE},
                                 {&eq->fid, 0}}) {
      MUST(fi_ep_bind, endpoint, object, flags);
    }
    MUST(fi_enable, endpoint);
    MUST(fi_mr_reg, on.domain, memory.data(), memory.size(), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0,
         &region, nullptr);
  }
  ~Side() {
    must("fi_close of an endpoint", call("fi_close (endpoint)", [&] { return fi_close(&endpoint->fid); }));
    must("fi_close of a region", call("fi_close (region)", [&] { return fi_close(&region->fid); }));
    must("fi_close of a vector", call("fi_close (address vector)", [&] { return fi_close(&av->fid); }));
    must("fi_close of a counter", call("fi_close (counter)", [&] { return fi_close(&counter->fid); }));
    must("fi_close of a queue", call("fi_close (completion queue)", [&] { return fi_close(&cq->fid); }));
    must("fi_close of a queue", call("fi_close (event queue)", [&] { return fi_close(&eq->fid); }));
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  fi_addr_t insert(Side& other) {
    std::uint8_t name[64];
    std::size_t size = sizeof name;
    MUST(fi_getname, &other.endpoint->fid, name, &size);
    fi_addr_t address = FI_ADDR_UNSPEC;
    if (CALL(fi_av_insert, av, name, 1, &address, 0, nullptr) != 1) die("fi_av_insert", 0);
    return address;
  }
  void meet(Side& other) {
    self = insert(*this);
    peer = insert(other);
  }
  /// Takes the completions.
  void progress() {
    fi_cq_tagged_entry entry{};
    fi_addr_t source = 0;
    const bool from = ++reads_ % 2 == 0;
    const long got = from ? CALL(fi_cq_readfrom, cq, &entry, 1, &source) : CALL(fi_cq_read, cq, &entry, 1);
    if (got == 1) ends_[entry.op_context] = 0;
    if (got == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      if (CALL(fi_cq_readerr, cq, &error, 0) != 1) die("fi_cq_readerr", 0);
      call("fi_cq_strerror",
           [&] { return fi_cq_strerror(cq, error.prov_errno, error.err_data, nullptr, 0) != nullptr; });
      ends_[error.op_context] = error.err;
    } else if (got < 0 && got != -FI_EAGAIN) {
      die("reading a queue", got);
    }
  }
  bool ended(const void* context) const { return ends_.count(context) != 0; }
  int take_end(const void* context) {
    const int error = ends_.at(context);
    ends_.erase(context);
    return error;
  }
  /// The kind of the next event; 0 if there is none.
  std::uint32_t event() {
    std::uint32_t kind = 0;
    alignas(8) char buffer[512];
    return CALL(fi_eq_read, eq, &kind, buffer, sizeof buffer, 0) >= 0 ? kind : 0;
  }

  Fabric& on_;
  const std::uint64_t key;
  fid_eq* eq = nullptr;
  fid_cq* cq = nullptr;
  fid_cntr* counter = nullptr;
  fid_av* av = nullptr;
  fid_ep* endpoint = nullptr;
  fid_mr* region = nullptr;
  fi_addr_t self = FI_ADDR_UNSPEC, peer = FI_ADDR_UNSPEC;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kRegionBytes);

 private:
  unsigned reads_ = 0;
  std::map<const void*, int> ends_;
};

/// The calls that two sides make together.
class Pair {
 public:
  Pair(Side& a, Side& b) : a_(a), b_(b) {}

  template <typename Condition>
  void until(const char* what, Condition&& condition) {
    const Clock::time_point deadline = Clock::now() + kPatience;
    while (!condition()) {
      a_.progress();
      b_.progress();
      if (Clock::now() > deadline) die(what, -FI_ETIMEDOUT);
    }
  }
  template <typename Post>
  void post(const char* what, Post&& post) {
    long status = 0;
    until(what, [&] { return (status = post()) != -FI_EAGAIN; });
    must(what, status);
  }
  int end_of(Side& side, const void* context) {
    until("an operation never ends", [&] { return side.ended(context); });
    return side.take_end(context);
  }
  void ends_well(Side& side, const void* context) {
    if (const int error = end_of(side, context)) die("an operation fails", -error);
  }

  /// One message of each kind of call, from a to b.
  void messages(std::size_t size) {
    std::vector<std::uint8_t> out(size, 1), in(size);
    iovec part{out.data(), size}, place{in.data(), size};
    void* none = nullptr;
    fi_context sent{}, got{};
    const auto exchange = [&](const char* name, bool completes, auto&& send) {
      post("fi_recv", [&] { return CALL(fi_recv, b_.endpoint, in.data(), size, nullptr, b_.peer, &got); });
      post(name, [&] { return call(name, send); });
      if (completes) ends_well(a_, &sent);
      ends_well(b_, &got);
    };
    const auto exchange_tagged = [&](const char* name, bool completes, auto&& send) {
      post("fi_trecv",
           [&] { return CALL(fi_trecv, b_.endpoint, in.data(), size, nullptr, b_.peer, 7, 0, &got); });
      post(name, [&] { return call(name, send); });
      if (completes) ends_well(a_, &sent);
      ends_well(b_, &got);
    };
    fid_ep* const from = a_.endpoint;
    const fi_addr_t to = a_.peer;
    exchange("fi_send", true, [&] { return fi_send(from, out.data(), size, nullptr, to, &sent); });
    exchange("fi_sendv", true, [&] { return fi_sendv(from, &part, &none, 1, to, &sent); });
    exchange("fi_senddata", true, [&] { return fi_senddata(from, out.data(), size, nullptr, 5, to, &sent); });
    fi_msg message{&part, &none, 1, to, &sent, 0};
    exchange("fi_sendmsg", true,
             [&] { return fi_sendmsg(from, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE); });
    exchange_tagged("fi_tsend", true,
                    [&] { return fi_tsend(from, out.data(), size, nullptr, to, 7, &sent); });
    exchange_tagged("fi_tsendv", true, [&] { return fi_tsendv(from, &part, &none, 1, to, 7, &sent); });
    exchange_tagged("fi_tsenddata", true,
                    [&] { return fi_tsenddata(from, out.data(), size, nullptr, 5, to, 7, &sent); });
    fi_msg_tagged tagged{&part, &none, 1, to, 7, 0, &sent, 0};
    exchange_tagged("fi_tsendmsg", true,
                    [&] { return fi_tsendmsg(from, &tagged, FI_COMPLETION | FI_DELIVERY_COMPLETE); });
    if (size <= on().info->tx_attr->inject_size) {
      exchange("fi_inject", false, [&] { return fi_inject(from, out.data(), size, to); });
      exchange("fi_injectdata", false, [&] { return fi_injectdata(from, out.data(), size, 5, to); });
      exchange_tagged("fi_tinject", false, [&] { return fi_tinject(from, out.data(), size, to, 7); });
      exchange_tagged("fi_tinjectdata", false,
                      [&] { return fi_tinjectdata(from, out.data(), size, 5, to, 7); });
    }
    // Unexpected, found by looking, received by other calls.
    post("fi_tsend", [&] { return CALL(fi_tsend, from, out.data(), size, nullptr, to, 8, &sent); });
    fi_msg_tagged look{&place, &none, 1, b_.peer, 8, 0, &got, 0};
    int seen = FI_ENOMSG;
    while (seen == FI_ENOMSG) {
      post("fi_trecvmsg", [&] { return CALL(fi_trecvmsg, b_.endpoint, &look, FI_PEEK); });
      seen = end_of(b_, &got);
    }
    post("fi_trecvv", [&] { return CALL(fi_trecvv, b_.endpoint, &place, &none, 1, b_.peer, 8, 0, &got); });
    ends_well(a_, &sent);
    ends_well(b_, &got);
    fi_msg receive{&place, &none, 1, b_.peer, &got, 0};
    post("fi_recvmsg", [&] { return CALL(fi_recvmsg, b_.endpoint, &receive, FI_COMPLETION); });
    MUST(fi_cancel, &b_.endpoint->fid, &got);
    if (end_of(b_, &got) != FI_ECANCELED) die("a cancelled receive", 0);
    post("fi_recvv", [&] { return CALL(fi_recvv, b_.endpoint, &place, &none, 1, b_.peer, &got); });
    MUST(fi_cancel, &b_.endpoint->fid, &got);
    end_of(b_, &got);
    // Many at once: bursts of frames.
    std::vector<fi_context> outs(64), ins(64);
    for (fi_context& one : ins)
      post("fi_recv", [&] { return CALL(fi_recv, b_.endpoint, in.data(), size, nullptr, b_.peer, &one); });
    for (fi_context& one : outs)
      post("fi_send", [&] { return CALL(fi_send, from, out.data(), size, nullptr, to, &one); });
    for (fi_context& one : outs) ends_well(a_, &one);
    for (fi_context& one : ins) ends_well(b_, &one);
  }

  /// Remote access from a to b.
  void accesses(std::size_t size) {
    std::vector<std::uint8_t> local(size, 3);
    iovec part{local.data(), size};
    void* none = nullptr;
    fi_context done{};
    const auto access = [&](const char* name, bool completes, auto&& begin) {
      post(name, [&] { return call(name, begin); });
      if (completes) ends_well(a_, &done);
    };
    fid_ep* const from = a_.endpoint;
    const fi_addr_t to = a_.peer;
    const std::uint64_t key = b_.key;
    const fi_rma_iov target{0, size, key};
    const fi_msg_rma message{&part, &none, 1, to, &target, 1, &done, 0};
    for (int i = 0; i < 20; ++i) {  // the 16th use of a region maps it
      access("fi_write", true,
             [&] { return fi_write(from, local.data(), size, nullptr, to, 0, key, &done); });
      access("fi_read", true, [&] { return fi_read(from, local.data(), size, nullptr, to, 0, key, &done); });
    }
    access("fi_writev", true, [&] { return fi_writev(from, &part, &none, 1, to, 0, key, &done); });
    access("fi_readv", true, [&] { return fi_readv(from, &part, &none, 1, to, 0, key, &done); });
    access("fi_writemsg", true,
           [&] { return fi_writemsg(from, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE); });
    access("fi_readmsg", true, [&] { return fi_readmsg(from, &message, FI_COMPLETION); });
    access("fi_writedata", true,
           [&] { return fi_writedata(from, local.data(), size, nullptr, 9, to, 0, key, &done); });
    if (size <= on().info->tx_attr->inject_size) {
      access("fi_inject_write", false, [&] { return fi_inject_write(from, local.data(), size, to, 0, key); });
      access("fi_inject_writedata", false,
             [&] { return fi_inject_writedata(from, local.data(), size, 9, to, 0, key); });
    }
    // No region has this key.
    post("fi_write", [&] { return CALL(fi_write, from, local.data(), size, nullptr, to, 0, 4711, &done); });
    if (end_of(a_, &done) == 0) die("a write without a region", 0);
  }

  void atomics() {
    std::uint64_t operand = 1, compare = 2, result = 0;
    fi_ioc part{&operand, 1}, place{&result, 1}, other{&compare, 1};
    void* none = nullptr;
    fi_context done{};
    fid_ep* const from = a_.endpoint;
    const fi_addr_t to = a_.peer;
    const std::uint64_t key = b_.key;
    const auto access = [&](const char* name, bool completes, auto&& begin) {
      post(name, [&] { return call(name, begin); });
      if (completes) ends_well(a_, &done);
    };
    const auto type = FI_UINT64;
    access("fi_atomic", true,
           [&] { return fi_atomic(from, &operand, 1, nullptr, to, 0, key, type, FI_SUM, &done); });
    access("fi_atomicv", true,
           [&] { return fi_atomicv(from, &part, &none, 1, to, 0, key, type, FI_SUM, &done); });
    access("fi_inject_atomic", false,
           [&] { return fi_inject_atomic(from, &operand, 1, to, 0, key, type, FI_SUM); });
    access("fi_fetch_atomic", true, [&] {
      return fi_fetch_atomic(from, &operand, 1, nullptr, &result, nullptr, to, 0, key, type, FI_SUM, &done);
    });
    access("fi_fetch_atomicv", true, [&] {
      return fi_fetch_atomicv(from, &part, &none, 1, &place, &none, 1, to, 0, key, type, FI_SUM, &done);
    });
    access("fi_compare_atomic", true, [&] {
      return fi_compare_atomic(from, &operand, 1, nullptr, &compare, nullptr, &result, nullptr, to, 0, key,
                               type, FI_CSWAP, &done);
    });
    access("fi_compare_atomicv", true, [&] {
      return fi_compare_atomicv(from, &part, &none, 1, &other, &none, 1, &place, &none, 1, to, 0, key, type,
                                FI_CSWAP, &done);
    });
    const fi_rma_ioc target{0, 1, key};
    const fi_msg_atomic message{&part, &none, 1, to, &target, 1, type, FI_SUM, &done, 0};
    access("fi_atomicmsg", true, [&] { return fi_atomicmsg(from, &message, FI_COMPLETION); });
    access("fi_fetch_atomicmsg", true,
           [&] { return fi_fetch_atomicmsg(from, &message, &place, &none, 1, FI_COMPLETION); });
    const fi_msg_atomic compared{&part, &none, 1, to, &target, 1, type, FI_CSWAP, &done, 0};
    access("fi_compare_atomicmsg", true, [&] {
      return fi_compare_atomicmsg(from, &compared, &other, &none, 1, &place, &none, 1, FI_COMPLETION);
    });
    std::size_t count = 0;
    MUST(fi_atomicvalid, from, type, FI_SUM, &count);
    fi_atomic_attr attributes{};
    MUST(fi_query_atomic, on().domain, type, FI_SUM, &attributes, 0);
  }

  void group() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(5000);
    inet_pton(AF_INET, on().group, &address.sin_addr);
    fid_mc* mine = nullptr;
    fid_mc* its = nullptr;
    MUST(fi_join, a_.endpoint, &address, 0, &mine, nullptr);
    MUST(fi_join, b_.endpoint, &address, 0, &its, nullptr);
    joined();
    for (const std::size_t size : {std::size_t{8}, std::size_t{40'000}}) {
      std::vector<std::uint8_t> out(size), in(size);
      std::vector<fi_context> outs(32), ins(32);
      for (fi_context& one : ins)
        post("fi_trecv",
             [&] { return CALL(fi_trecv, b_.endpoint, in.data(), size, nullptr, b_.peer, 3, 0, &one); });
      for (fi_context& one : outs) {
        post("fi_tsend", [&] {
          return call("fi_tsend (group)", [&] {
            return fi_tsend(a_.endpoint, out.data(), size, nullptr, fi_mc_addr(mine), 3, &one);
          });
        });
      }
      for (fi_context& one : outs) ends_well(a_, &one);
      for (fi_context& one : ins) ends_well(b_, &one);
    }
    must("fi_close of a group", call("fi_close (group)", [&] { return fi_close(&mine->fid); }));
    must("fi_close of a group", call("fi_close (group)", [&] { return fi_close(&its->fid); }));
  }

  void collectives() {
    struct Member {
      Side& side;
      fid_av_set* set = nullptr;
      fid_mc* mc = nullptr;
      std::uint64_t from[2] = {1, 2}, to[2] = {};
      fi_context context{};
    } members[2] = {{a_}, {b_}};
    for (Member& member : members) {
      fi_av_set_attr attributes{};
      attributes.count = 2;
      attributes.start_addr = attributes.end_addr = FI_ADDR_NOTAVAIL;
      MUST(fi_av_set, member.side.av, &attributes, &member.set, nullptr);
      const bool first = &member == members;
      MUST(fi_av_set_insert, member.set, first ? member.side.self : member.side.peer);
      MUST(fi_av_set_insert, member.set, first ? member.side.peer : member.side.self);
      MUST(fi_join_collective, member.side.endpoint, FI_ADDR_NOTAVAIL, member.set, 0, &member.mc, nullptr);
    }
    joined();
    const auto all = [&](const char* name, auto&& start) {
      for (Member& member : members) {
        post(name, [&] {
          return call(name, [&] { return start(member.side.endpoint, fi_mc_addr(member.mc), member); });
        });
      }
      for (Member& member : members) ends_well(member.side, &member.context);
    };
    const auto type = FI_UINT64;
    all("fi_barrier", [](fid_ep* ep, fi_addr_t team, Member& m) { return fi_barrier(ep, team, &m.context); });
    all("fi_broadcast", [&](fid_ep* ep, fi_addr_t team, Member& m) {
      return fi_broadcast(ep, m.from, 1, nullptr, team, a_.self, type, 0, &m.context);
    });
    all("fi_allreduce", [&](fid_ep* ep, fi_addr_t team, Member& m) {
      return fi_allreduce(ep, m.from, 1, nullptr, m.to, nullptr, team, type, FI_SUM, 0, &m.context);
    });
    all("fi_allgather", [&](fid_ep* ep, fi_addr_t team, Member& m) {
      return fi_allgather(ep, m.from, 1, nullptr, m.to, nullptr, team, type, 0, &m.context);
    });
    all("fi_alltoall", [&](fid_ep* ep, fi_addr_t team, Member& m) {
      return fi_alltoall(ep, m.from, 1, nullptr, m.to, nullptr, team, type, 0, &m.context);
    });
    fi_collective_attr attributes{};
    attributes.op = FI_SUM;
    attributes.datatype = type;
    MUST(fi_query_collective, on().domain, FI_ALLREDUCE, &attributes, 0);
    for (Member& member : members) {
      long status = -FI_EBUSY;
      until("closing a team", [&] {
        return (status = call("fi_close (team)", [&] { return fi_close(&member.mc->fid); })) != -FI_EBUSY;
      });
      must("fi_close of a team", status);
      must("fi_close of a set", call("fi_close (set)", [&] { return fi_close(&member.set->fid); }));
    }
  }

  /// The calls that neither send nor receive.
  void looks() {
    fid* waited[] = {&a_.cq->fid, &a_.counter->fid, &a_.eq->fid};
    CALL(fi_trywait, on().fabric, waited, 3);
    fi_wait_obj object = FI_WAIT_NONE;
    MUST(fi_control, &a_.cq->fid, FI_GETWAITOBJ, &object);
    int descriptor = -1;
    CALL(fi_control, &a_.cq->fid, FI_GETWAIT, &descriptor);
    CALL(fi_cntr_read, a_.counter);
    CALL(fi_cntr_readerr, a_.counter);
    MUST(fi_cntr_add, a_.counter, 1);
    MUST(fi_cntr_set, a_.counter, 1);
    MUST(fi_cntr_wait, a_.counter, 1, 0);
    MUST(fi_cq_signal, a_.cq);
    fi_cq_tagged_entry entry{};
    CALL(fi_cq_sread, a_.cq, &entry, 1, nullptr, 0);
    std::uint32_t event = 4;
    MUST(fi_eq_write, a_.eq, event, &event, sizeof event, 0);
    MUST(fi_eq_sread, a_.eq, &event, &event, sizeof event, 0, 0);
    char text[100];
    std::size_t length = sizeof text;
    std::uint8_t name[64];
    std::size_t size = sizeof name;
    MUST(fi_av_lookup, a_.av, a_.peer, name, &size);
    call("fi_av_straddr", [&] { return fi_av_straddr(a_.av, name, text, &length) != nullptr; });
    MUST(fi_av_remove, b_.av, &b_.self, 1, 0);
    fi_addr_t address = 0;
    if (CALL(fi_av_insertsvc, b_.av, "127.0.0.1", "4000", &address, 0, nullptr) != 1)
      die("fi_av_insertsvc", 0);
    call("fi_tx_size_left",
         [&] { return a_.endpoint->ops->tx_size_left(a_.endpoint); });  // the functions are deprecated
    call("fi_rx_size_left", [&] { return a_.endpoint->ops->rx_size_left(a_.endpoint); });
    std::size_t value = 0, value_size = sizeof value;
    MUST(fi_getopt, &a_.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &value_size);
    MUST(fi_setopt, &a_.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, value_size);
    fi_cluster_ops_stats* stats = nullptr;
    MUST(fi_open_ops, &a_.endpoint->fid, FI_CLUSTER_STATS, 0, reinterpret_cast<void**>(&stats), nullptr);
    fi_cluster_counter counters[200];
    call("counters", [&] { return stats->counters(a_.endpoint, counters, 200); });
    const char* path = nullptr;
    call("path", [&] { return stats->path(a_.endpoint, a_.peer, &path); });
  }

 private:
  Fabric& on() { return a_.on_; }
  void joined() {
    for (Side* side : {&a_, &b_})
      until("a join never ends", [&] { return side->event() == FI_JOIN_COMPLETE; });
  }

  Side& a_;
  Side& b_;
};

void everything() {
  Fabric fabric;
  Side a(fabric, 77, FI_WAIT_FD), b(fabric, 78, FI_WAIT_FD);
  a.meet(b);
  b.meet(a);
  Pair there(a, b), back(b, a);
  for (const std::size_t size :
       {std::size_t{8}, std::size_t{3'000}, std::size_t{60'000}, std::size_t{500'000}}) {
    there.messages(size);
    back.messages(size);
    there.accesses(size);
  }
  there.atomics();
  there.collectives();
  if (fabric.group != nullptr) there.group();
  there.looks();
  there.messages(8);
}

// --- modes ---

int measure_stacks(std::size_t most) {
  void* const stack = mmap(nullptr, kPainted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) die("mmap", 0);
  painted = static_cast<char*>(stack) + 4096;
  in_thread([] { everything(); }, stack);
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const auto& [name, depth] : depths) order.emplace_back(depth, name);
  std::sort(order.rbegin(), order.rend());
  bool too_deep = false;
  for (const auto& [depth, name] : order) {
    std::printf("%6zu bytes  %s%s\n", depth, name.c_str(), depth > most ? "  TOO DEEP" : "");
    too_deep |= depth > most;
  }
  return too_deep ? 1 : 0;
}

void name_call_and_abort(int) {
  const char* const name = current;
  if (write(STDOUT_FILENO, "aborted in ", 11) < 0 || write(STDOUT_FILENO, name, std::strlen(name)) < 0)
    std::_Exit(3);
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

/// Runs `sleeping` in a thread and cancels it.
template <typename Sleeping>
void cancel_in_sleep(const char* name, Sleeping sleeping) {
  struct State {
    Sleeping sleeping;
    std::atomic<bool> started{false};
  } state{sleeping};
  pthread_t thread;
  const auto body = [](void* argument) -> void* {
    State& its = *static_cast<State*>(argument);
    its.started = true;
    its.sleeping();
    return nullptr;
  };
  current = name;
  if (pthread_create(&thread, nullptr, body, &state) != 0) die("pthread_create", 0);
  while (!state.started) usleep(100);
  usleep(20'000);
  pthread_cancel(thread);
  void* result = nullptr;
  timespec end{};
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  if (pthread_timedjoin_np(thread, &result, &end) != 0) die("a cancelled thread sleeps on", 0);
  if (result != PTHREAD_CANCELED) die("a cancelled thread returned", 0);
}

void cancel_sleepers(fi_wait_obj wait) {
  Fabric fabric;
  Side a(fabric, 77, wait), b(fabric, 78, wait);
  a.meet(b);
  b.meet(a);
  Pair there(a, b), back(b, a);
  fi_cq_tagged_entry entry{};
  fi_addr_t source = 0;
  std::uint32_t event = 0;
  alignas(8) char buffer[512];
  for (int round = 0; round < 3; ++round) {
    cancel_in_sleep("fi_cq_sread", [&] { return fi_cq_sread(b.cq, &entry, 1, nullptr, -1); });
    cancel_in_sleep("fi_cq_sreadfrom",
                    [&] { return fi_cq_sreadfrom(b.cq, &entry, 1, &source, nullptr, 60'000); });
    cancel_in_sleep("fi_cntr_wait", [&] { return fi_cntr_wait(b.counter, 1'000'000, -1); });
    cancel_in_sleep("fi_cntr_wait beside another thread", [&] {
      std::thread other([&] { fi_cntr_wait(b.counter, 1'000'000, 200); });
      other.detach();
      return fi_cntr_wait(b.counter, 1'000'000, -1);
    });
    cancel_in_sleep("fi_eq_sread", [&] { return fi_eq_sread(b.eq, &event, buffer, sizeof buffer, -1, 0); });
    there.messages(8);
    back.messages(60'000);
    there.accesses(60'000);
    // After all these, a thread that sleeps must still be woken by its event.
    std::uint8_t byte = 0;
    fi_context got{}, sent{};
    MUST(fi_recv, b.endpoint, &byte, 1, nullptr, b.peer, &got);
    std::thread sender([&] {
      usleep(30'000);
      there.post("fi_send", [&] { return fi_send(a.endpoint, &byte, 1, nullptr, a.peer, &sent); });
    });
    if (CALL(fi_cq_sread, b.cq, &entry, 1, nullptr, 20'000) != 1 || entry.op_context != &got)
      die("fi_cq_sread after a cancellation", 0);
    sender.join();
    there.ends_well(a, &sent);
  }
  usleep(300'000);  // the detached threads
}

/// Cancels threads at any moment while they take messages from a queue: the next thread gets the messages that they
/// have not taken.
void cancel_readers() {
  Fabric fabric;
  Side a(fabric, 77, FI_WAIT_FD), b(fabric, 78, FI_WAIT_FD);
  a.meet(b);
  b.meet(a);
  Pair there(a, b);
  std::atomic<unsigned> taken{0};
  unsigned sent = 0;
  std::uint8_t in = 0, out = 0;
  fi_context got{}, context{};
  for (int round = 0; round < 300; ++round) {
    pthread_t reader;
    struct State {
      fid_cq* cq;
      std::atomic<unsigned>& taken;
    } state{b.cq, taken};
    pthread_create(
        &reader, nullptr,
        [](void* argument) -> void* {
          State& its = *static_cast<State*>(argument);
          fi_cq_tagged_entry entry{};
          for (;;) {
            if (fi_cq_sread(its.cq, &entry, 1, nullptr, -1) == 1) ++its.taken;
          }
        },
        &state);
    for (int i = 0; i < round % 5; ++i, ++sent) {
      MUST(fi_recv, b.endpoint, &in, 1, nullptr, b.peer, &got);
      long status = 0;
      while ((status = fi_send(a.endpoint, &out, 1, nullptr, a.peer, &context)) == -FI_EAGAIN) a.progress();
      must("fi_send", status);
      while (!a.ended(&context)) a.progress();
      a.take_end(&context);
    }
    for (int spins = 0; spins < round * 37 % 1000; ++spins) __asm__ volatile("");
    pthread_cancel(reader);
    void* result = nullptr;
    pthread_join(reader, &result);
    if (result != PTHREAD_CANCELED) die("a cancelled reader returned", 0);
  }
  const Clock::time_point deadline = Clock::now() + kPatience;
  fi_cq_tagged_entry entry{};
  while (taken < sent) {
    if (fi_cq_sread(b.cq, &entry, 1, nullptr, 100) == 1) ++taken;
    if (Clock::now() > deadline) die("completions are lost with the thread that was cancelled", 0);
  }
}

int cancel() {
  std::signal(SIGABRT, name_call_and_abort);
  setvbuf(stdout, nullptr, _IONBF, 0);
  // libfabric's own work at its first call does not count for the provider.
  fi_info* first = nullptr;
  must("fi_getinfo", fi_getinfo(FI_VERSION(1, 15), nullptr, nullptr, 0, nullptr, &first));
  fi_freeinfo(first);
  static std::atomic<bool> complete{false};
  void* const result = in_thread([] {
    pthread_cancel(pthread_self());
    everything();
    complete = true;
    pthread_testcancel();
  });
  if (!complete || result != PTHREAD_CANCELED) {
    std::printf("a call that does not wait acted upon a cancellation: %s\n", current.load());
    return 1;
  }
  cancel_sleepers(FI_WAIT_FD);
  cancel_sleepers(FI_WAIT_YIELD);
  cancel_readers();
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::string mode = count > 1 ? words[1] : "";
  if (mode == "stack") return measure_stacks(count > 2 ? std::strtoul(words[2], nullptr, 10) : kStackMax);
  if (mode == "cancelled") return cancel();
  std::fprintf(stderr, "usage: every_call stack [BYTES] | cancelled\n");
  return 2;
}
