// A target of remote memory access and its initiator, for as long as a hostile host attacks both.
//
//   rma_pair [--poll] [--window N] SECONDS IP PORT                    target: prints PASS when the initiator has ended
//   rma_pair [--poll] [--window N] SECONDS IP PORT TARGET-IP PORT     initiator: puts, gets and compares until the time is over
//
// In a round the initiator puts N pieces at once (one unless another number is given), gets them, and compares. Both sides sleep
// while nothing comes; with --poll they read their queues without a pause, as MPI libraries do.
//
// The target's memory is one region under key 1, the first key that an attacker would try. The initiator uses its first
// half. Nobody may access the second half, which must be unchanged at the end.
#include <arpa/inet.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t kHalf = 64 * 1024;
constexpr long kWindowMax = 64;
constexpr std::uint64_t kKey = 1;
constexpr unsigned char kUntouched = 0xA5;

[[noreturn]] void fail(const char* what, long code = 0) {
  std::printf("FAIL %s: %s\n", what, code == 0 ? "" : fi_strerror(static_cast<int>(code < 0 ? -code : code)));
  std::exit(1);
}

void must(const char* what, long code) {
  if (code != 0) fail(what, code);
}

struct Endpoint {
  Endpoint(const char* ip, const char* port) {
    fi_info* const hints = fi_allocinfo();
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->data_progress = hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
    hints->fabric_attr->prov_name = strdup("cluster");
    fi_info* info = nullptr;
    must("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), ip, port, FI_SOURCE, hints, &info));
    fid_fabric* fabric = nullptr;
    must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, nullptr));
    must("fi_domain", fi_domain(fabric, info, &domain, nullptr));
    must("fi_endpoint", fi_endpoint(domain, info, &ep, nullptr));
    fi_cq_attr queue{};
    queue.format = FI_CQ_FORMAT_CONTEXT;
    queue.wait_obj = FI_WAIT_UNSPEC;
    must("fi_cq_open", fi_cq_open(domain, &queue, &cq, nullptr));
    fi_av_attr table{};
    must("fi_av_open", fi_av_open(domain, &table, &av, nullptr));
    must("fi_ep_bind", fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
    must("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
    must("fi_enable", fi_enable(ep));
    fi_freeinfo(info);
    fi_freeinfo(hints);
  }
  fi_addr_t insert(const sockaddr_in& peer) {
    fi_addr_t handle = FI_ADDR_UNSPEC;
    if (fi_av_insert(av, &peer, 1, &handle, 0, nullptr) != 1) fail("fi_av_insert");
    return handle;
  }
  void complete(const char* what) {
    fi_cq_entry entry;
    for (;;) {
      const ssize_t got = polls ? fi_cq_read(cq, &entry, 1) : fi_cq_sread(cq, &entry, 1, nullptr, 1000);
      if (got == 1) return;
      if (got == -FI_EAVAIL) {
        fi_cq_err_entry error{};
        fi_cq_readerr(cq, &error, 0);
        fail(what, error.err);
      }
      if (got != -FI_EAGAIN) fail(what, got);
    }
  }
  template <typename Call>
  void post(const char* what, Call&& call) {
    for (long status = call(); status != 0; status = call()) {
      if (status != -FI_EAGAIN) fail(what, status);
      fi_cq_read(cq, nullptr, 0);
    }
  }
  template <typename Call>
  void run(const char* what, Call&& call) {
    post(what, call);
    complete(what);
  }

  bool polls = false;
  fid_domain* domain = nullptr;
  fid_ep* ep = nullptr;
  fid_cq* cq = nullptr;
  fid_av* av = nullptr;
};

sockaddr_in address(const char* ip, const char* port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  if (inet_pton(AF_INET, ip, &made.sin_addr) != 1) fail("address");
  return made;
}

void serve(Endpoint& own) {
  std::vector<unsigned char> memory(2 * kHalf, kUntouched);
  fid_mr* region = nullptr;
  must("fi_mr_reg", fi_mr_reg(own.domain, memory.data(), memory.size(), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                              kKey, 0, &region, nullptr));
  std::printf("ready\n");
  std::fflush(stdout);
  sockaddr_in initiator{};
  own.run("the initiator's name",
          [&] { return fi_recv(own.ep, &initiator, sizeof initiator, nullptr, FI_ADDR_UNSPEC, nullptr); });
  const fi_addr_t peer = own.insert(initiator);
  char word = 0;
  own.run("fi_send", [&] { return fi_send(own.ep, &word, 1, nullptr, peer, nullptr); });
  own.run("the end", [&] { return fi_recv(own.ep, &word, 1, nullptr, peer, nullptr); });
  for (std::size_t i = kHalf; i < memory.size(); ++i) {
    if (memory[i] != kUntouched) fail("memory was written outside of the initiator's half");
  }
  std::printf("PASS target\n");
  must("fi_close", fi_close(&region->fid));
}

void access(Endpoint& own, const sockaddr_in& name, fi_addr_t target, int seconds, std::size_t window) {
  char word = 0;
  own.run("fi_send", [&] { return fi_send(own.ep, &name, sizeof name, nullptr, target, nullptr); });
  own.run("the answer", [&] { return fi_recv(own.ep, &word, 1, nullptr, target, nullptr); });
  std::vector<unsigned char> out(kHalf);
  std::vector<unsigned char> in(kHalf);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  const std::size_t place = kHalf / window;
  unsigned rounds = 0;
  for (; std::chrono::steady_clock::now() < end; ++rounds) {
    const std::size_t size = std::min<std::size_t>(rounds % 3 == 0   ? 8
                                                   : rounds % 3 == 1 ? 4096
                                                                     : kHalf,
                                                   place);
    for (std::size_t i = 0; i < place * window; ++i) out[i] = static_cast<unsigned char>(rounds * 7 + i);
    for (std::size_t at = 0; at < place * window; at += place)
      own.post("fi_write",
               [&] { return fi_write(own.ep, &out[at], size, nullptr, target, at, kKey, nullptr); });
    for (std::size_t i = 0; i < window; ++i) own.complete("fi_write");
    for (std::size_t at = 0; at < place * window; at += place)
      own.post("fi_read", [&] { return fi_read(own.ep, &in[at], size, nullptr, target, at, kKey, nullptr); });
    for (std::size_t i = 0; i < window; ++i) own.complete("fi_read");
    for (std::size_t at = 0; at < place * window; at += place) {
      if (std::memcmp(&in[at], &out[at], size) != 0) fail("what was read is not what was written");
    }
  }
  own.run("fi_send", [&] { return fi_send(own.ep, &word, 1, nullptr, target, nullptr); });
  std::printf("PASS initiator, %u rounds\n", rounds);
}

}  // namespace

int main(int argc, char** argv) {
  bool polls = false;
  long window = 1;
  int first = 1;
  for (; first < argc && argv[first][0] == '-'; ++first) {
    if (std::strcmp(argv[first], "--poll") == 0) polls = true;
    if (std::strcmp(argv[first], "--window") == 0 && ++first < argc) window = std::atol(argv[first]);
  }
  char** const words = argv + first;
  const int count = argc - first;
  if ((count != 3 && count != 5) || window < 1 || window > kWindowMax) {
    std::fprintf(stderr, "usage: rma_pair [--poll] [--window 1..%ld] SECONDS IP PORT [TARGET-IP PORT]\n",
                 kWindowMax);
    return 2;
  }
  Endpoint own(words[1], words[2]);
  own.polls = polls;
  if (count == 3) {
    serve(own);
  } else {
    access(own, address(words[1], words[2]), own.insert(address(words[3], words[4])), std::atoi(words[0]),
           static_cast<std::size_t>(window));
  }
  must("fi_close", fi_close(&own.ep->fid));
  return 0;
}
