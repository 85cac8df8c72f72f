// One endpoint of a job: says its address, reads those of all, sends each a message and takes one from each, all at
// once; then says "done" and how many descriptors it holds. Ends with its input.
#include <dirent.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

namespace {

void must(long status, const char* what) {
  if (status >= 0) return;
  std::fprintf(stderr, "first_contact: %s: %s\n", what, fi_strerror(static_cast<int>(-status)));
  std::exit(1);
}

int open_descriptors() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return -1;
  int count = -3;  // ".", "..", and the one that looks
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

struct Endpoint {
  fid_ep* endpoint = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;

  Endpoint() {
    fi_info* hints = fi_allocinfo();
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG;
    hints->fabric_attr->prov_name = strdup("cluster");
    fi_info* info = nullptr;
    must(fi_getinfo(FI_VERSION(1, 15), nullptr, nullptr, 0, hints, &info), "fi_getinfo");
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;
    must(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
    must(fi_domain(fabric, info, &domain, nullptr), "fi_domain");
    fi_av_attr addresses{};
    must(fi_av_open(domain, &addresses, &av, nullptr), "fi_av_open");
    fi_cq_attr completions{};
    completions.format = FI_CQ_FORMAT_MSG;
    must(fi_cq_open(domain, &completions, &cq, nullptr), "fi_cq_open");
    must(fi_endpoint(domain, info, &endpoint, nullptr), "fi_endpoint");
    must(fi_ep_bind(endpoint, &av->fid, 0), "fi_ep_bind");
    must(fi_ep_bind(endpoint, &cq->fid, FI_SEND | FI_RECV), "fi_ep_bind");
    must(fi_enable(endpoint), "fi_enable");
  }

  /// Also when a call answers that there is no capacity.
  std::size_t progress() {
    fi_cq_msg_entry entries[16];
    const long got = fi_cq_read(cq, entries, 16);
    if (got == -FI_EAGAIN) return 0;
    if (got == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      must(fi_cq_readerr(cq, &error, 0), "fi_cq_readerr");
      std::fprintf(stderr, "first_contact: %s\n", fi_cq_strerror(cq, error.prov_errno, error.err_data, nullptr, 0));
      std::exit(1);
    }
    must(got, "fi_cq_read");
    return static_cast<std::size_t>(got);
  }
};

}  // namespace

int main() {
  Endpoint own;
  unsigned char name[64];
  std::size_t size = sizeof name;
  must(fi_getname(&own.endpoint->fid, name, &size), "fi_getname");
  for (std::size_t i = 0; i < size; ++i) std::printf("%02x", name[i]);
  std::printf("\n");
  std::fflush(stdout);
  std::vector<fi_addr_t> peers;
  for (std::string line; std::getline(std::cin, line) && !line.empty();) {
    std::vector<unsigned char> bytes;
    for (std::size_t i = 0; i + 1 < line.size(); i += 2)
      bytes.push_back(static_cast<unsigned char>(std::strtoul(line.substr(i, 2).c_str(), nullptr, 16)));
    fi_addr_t peer = FI_ADDR_UNSPEC;
    if (fi_av_insert(own.av, bytes.data(), 1, &peer, 0, nullptr) != 1) must(-FI_EINVAL, "fi_av_insert");
    peers.push_back(peer);
  }
  std::vector<std::uint64_t> received(peers.size());
  std::vector<fi_context> contexts(2 * peers.size());
  std::size_t ended = 0;
  const auto post = [&](auto&& call) {
    long status;
    while ((status = call()) == -FI_EAGAIN) ended += own.progress();
    must(status, "posting");
  };
  for (std::size_t i = 0; i < peers.size(); ++i) {
    post([&] { return fi_recv(own.endpoint, &received[i], 8, nullptr, FI_ADDR_UNSPEC, &contexts[2 * i]); });
    post([&] { return fi_send(own.endpoint, &contexts, 8, nullptr, peers[i], &contexts[2 * i + 1]); });
  }
  while (ended < 2 * peers.size()) ended += own.progress();
  std::printf("done %d\n", open_descriptors());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) own.progress();
  return 0;
}
