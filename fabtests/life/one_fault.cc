// Two endpoints of one process exchange everything that the provider offers, while one call that the provider makes fails
// (fault_shim.cc). A call or an operation may fail because of that; the program then tries again, and it must succeed.
// A message that is reported as arrived must arrive; nothing may take longer than kPatience.
//
// Ends with 0 and a line of what failed; with kRefused where not even a second attempt opened what is needed; otherwise
// with 1, and says why.
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRefused = 3;
constexpr auto kPatience = std::chrono::seconds(8);
constexpr std::size_t kRegionBytes = 1 << 20;
constexpr std::uint64_t kKey = 77;
constexpr int kAttempts = 4;

std::string failures;

void note(const char* what, long status) {
  failures += std::string(failures.empty() ? "" : "; ") + what + ": " +
              fi_strerror(static_cast<int>(std::labs(status)));
}
[[noreturn]] void die(const std::string& why, int status = 1) {
  std::printf("%s (before: %s)\n", why.c_str(), failures.c_str());
  std::fflush(stdout);
  std::_Exit(status);
}

/// One call fails at most once, but what it left behind may fail what follows it.
template <typename Call>
void open(const char* what, Call&& call) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const long status = call();
    if (status >= 0) return;
    note(what, status);
  }
  die(std::string("not even a second attempt: ") + what, kRefused);
}
void close(fid* object, const char* what) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const long status = fi_close(object);
    if (status >= 0) return;
    note(what, status);
  }
  die(std::string("cannot be closed: ") + what);
}

struct Fabric {
  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;

  Fabric() {
    fi_info* const hints = fi_allocinfo();
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
    hints->fabric_attr->prov_name = strdup("cluster");
    if (std::getenv("LIFE_PROGRESS_THREAD") != nullptr) hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
    open("fi_getinfo", [&] { return fi_getinfo(FI_VERSION(1, 15), nullptr, nullptr, 0, hints, &info); });
    fi_freeinfo(hints);
    open("fi_fabric", [&] { return fi_fabric(info->fabric_attr, &fabric, nullptr); });
    open("fi_domain", [&] { return fi_domain(fabric, info, &domain, nullptr); });
  }
  ~Fabric() {
    close(&domain->fid, "domain");
    close(&fabric->fid, "fabric");
    fi_freeinfo(info);
  }
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
};

struct Side {
  fid_ep* endpoint = nullptr;
  fid_cq* cq = nullptr;
  fid_cntr* counter = nullptr;
  fid_av* av = nullptr;
  fid_mr* region = nullptr;
  fi_addr_t peer = FI_ADDR_UNSPEC;
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kRegionBytes);
  std::map<const void*, int> ends;  ///< by context: 0 or the error

  Side(Fabric& on, std::uint64_t key) {
    fi_cq_attr cq_attributes{};
    cq_attributes.format = FI_CQ_FORMAT_TAGGED;
    cq_attributes.wait_obj = FI_WAIT_FD;
    open("fi_cq_open", [&] { return fi_cq_open(on.domain, &cq_attributes, &cq, nullptr); });
    fi_cntr_attr counter_attributes{};
    open("fi_cntr_open", [&] { return fi_cntr_open(on.domain, &counter_attributes, &counter, nullptr); });
    fi_av_attr av_attributes{};
    open("fi_av_open", [&] { return fi_av_open(on.domain, &av_attributes, &av, nullptr); });
    open("fi_endpoint", [&] { return fi_endpoint(on.domain, on.info, &endpoint, nullptr); });
    open("fi_ep_bind av", [&] { return fi_ep_bind(endpoint, &av->fid, 0); });
    open("fi_ep_bind cq", [&] { return fi_ep_bind(endpoint, &cq->fid, FI_SEND | FI_RECV); });
    open("fi_ep_bind counter", [&] { return fi_ep_bind(endpoint, &counter->fid, FI_WRITE); });
    open("fi_enable", [&] { return fi_enable(endpoint); });
    open("fi_mr_reg", [&] {
      return fi_mr_reg(on.domain, memory.data(), memory.size(), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0,
                       &region, nullptr);
    });
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side() {
    close(&endpoint->fid, "endpoint");
    close(&region->fid, "region");
    close(&av->fid, "address vector");
    close(&counter->fid, "counter");
    close(&cq->fid, "completion queue");
  }

  void meet(Side& other) {
    std::uint8_t name[64];
    std::size_t size = sizeof name;
    open("fi_getname", [&] { return fi_getname(&other.endpoint->fid, name, &(size = sizeof name)); });
    open("fi_av_insert", [&] { return fi_av_insert(av, name, 1, &peer, 0, nullptr) == 1 ? 0 : -FI_ENOMEM; });
  }
  /// Takes what has ended, waiting for `milliseconds` at most.
  void progress(int milliseconds) {
    fi_cq_tagged_entry entry;
    const long got =
        milliseconds > 0 ? fi_cq_sread(cq, &entry, 1, nullptr, milliseconds) : fi_cq_read(cq, &entry, 1);
    if (got == 1) {
      ends[entry.op_context] = 0;
    } else if (got == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      if (fi_cq_readerr(cq, &error, 0) != 1) return;
      note(fi_cq_strerror(cq, error.prov_errno, error.err_data, nullptr, 0), error.err);
      ends[error.op_context] = error.err;
    } else if (got != -FI_EAGAIN && got != -FI_EINTR) {
      note("fi_cq_read", got);
    }
  }
};

class Exchange {
 public:
  Exchange(Side& from, Side& to) : from_(from), to_(to) {}

  /// Until it has succeeded; a receive is left over from an attempt whose send failed.
  void message(const char* what, std::size_t size, bool waiting) {
    waiting_ = waiting;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      ++tag_;
      const std::vector<std::uint8_t> sent(size, static_cast<std::uint8_t>(tag_));
      std::vector<std::uint8_t> got(size);
      fi_context in{}, out{};
      const auto receive = [&] {
        return post(
            what, [&] { return fi_trecv(to_.endpoint, got.data(), size, nullptr, to_.peer, tag_, 0, &in); });
      };
      if (!receive()) continue;
      const bool posted = post(
          what, [&] { return fi_tsend(from_.endpoint, sent.data(), size, nullptr, from_.peer, tag_, &out); });
      // A receive ends with an error while no peer is left. The message then waits for another receive.
      const auto renew = [&] {
        if (to_.ends.count(&in) != 0 && to_.ends[&in] != 0 && receive()) to_.ends.erase(&in);
      };
      const int send_error = posted ? end_of(from_, &out, what, renew) : FI_EOTHER;
      if (send_error != 0) fi_cancel(&to_.endpoint->fid, &in);
      const int receive_error =
          end_of(to_, &in, send_error == 0 ? "a message that was reported as sent" : "a cancelled receive");
      if (send_error != 0 || receive_error != 0) continue;
      if (got != sent) die(std::string("wrong bytes: ") + what);
      return;
    }
    die(std::string("never succeeds: ") + what);
  }

  void access(const char* what, bool waiting, const std::function<long(void*)>& begin) {
    waiting_ = waiting;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      fi_context context{};
      if (post(what, [&] { return begin(&context); }) && end_of(from_, &context, what) == 0) return;
    }
    die(std::string("never succeeds: ") + what);
  }

 private:
  void progress() {
    from_.progress(0);
    to_.progress(waiting_ ? 1 : 0);
  }
  /// False if it is refused; there may be no capacity for a while.
  template <typename Begin>
  bool post(const char* what, Begin&& begin) {
    const Clock::time_point deadline = Clock::now() + kPatience;
    long status;
    while ((status = begin()) == -FI_EAGAIN) {
      progress();
      if (Clock::now() > deadline) die(std::string("no capacity for ever: ") + what);
    }
    if (status < 0) note(what, status);
    return status >= 0;
  }
  int end_of(
      Side& side, const void* context, const char* what, const std::function<void()>& meanwhile = [] {}) {
    const Clock::time_point deadline = Clock::now() + kPatience;
    while (side.ends.count(context) == 0) {
      progress();
      meanwhile();
      if (Clock::now() > deadline) die(std::string("never ends: ") + what);
    }
    const int error = side.ends[context];
    side.ends.erase(context);
    return error;
  }

  Side& from_;
  Side& to_;
  std::uint64_t tag_ = 0;
  bool waiting_ = false;
};

void exchange_all(Side& one, Side& other, bool waiting, std::uint64_t key) {
  Exchange there(one, other), back(other, one);
  there.message("a short message", 8, waiting);
  back.message("a short answer", 8, waiting);
  there.message("a message of some frames", 20'000, waiting);
  there.message("a long message", kRegionBytes, waiting);
  std::vector<std::uint8_t> local(kRegionBytes, 3);
  std::uint64_t operand = 1, result = 0;
  there.access("a short write", waiting, [&](void* context) {
    return fi_write(one.endpoint, local.data(), 8, nullptr, one.peer, 0, key, context);
  });
  there.access("a long write", waiting, [&](void* context) {
    return fi_write(one.endpoint, local.data(), local.size(), nullptr, one.peer, 0, key, context);
  });
  if (other.memory != local) die("a write that has ended has not been done");
  there.access("a read", waiting, [&](void* context) {
    return fi_read(one.endpoint, local.data(), 100'000, nullptr, one.peer, 0, key, context);
  });
  there.access("an atomic", waiting, [&](void* context) {
    return fi_fetch_atomic(one.endpoint, &operand, 1, nullptr, &result, nullptr, one.peer, 0, key, FI_UINT64,
                           FI_SUM, context);
  });
}

}  // namespace

int main() {
  {
    Fabric fabric;
    Side one(fabric, kKey), other(fabric, kKey + 1);
    one.meet(other);
    other.meet(one);
    exchange_all(one, other, false, kKey + 1);
    exchange_all(other, one, true, kKey);
  }
  std::printf("%s\n", failures.c_str());
  return 0;
}
