// One endpoint of a job: says its address, reads those of all, sends each a message and takes one from each, all at
// once; then says "done", how many descriptors it holds and how many frames it has sent. Ends with its input.
#include <dirent.h>
#include <rdma/fi_ext_cluster.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "message_endpoint.h"

namespace {

using fabtests::MessageEndpoint;
using fabtests::must;

int open_descriptors() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return -1;
  int count = -3;  // ".", "..", and the one that looks
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

std::uint64_t frames_sent(fid_ep* endpoint) {
  fi_cluster_ops_stats* stats = nullptr;
  must(fi_open_ops(&endpoint->fid, FI_CLUSTER_STATS, 0, reinterpret_cast<void**>(&stats), nullptr),
       "fi_open_ops");
  std::vector<fi_cluster_counter> counters(static_cast<std::size_t>(stats->counters(endpoint, nullptr, 0)));
  stats->counters(endpoint, counters.data(), counters.size());
  for (const fi_cluster_counter& counter : counters) {
    if (std::strcmp(counter.name, "frames_sent") == 0) return counter.value;
  }
  std::fprintf(stderr, "first_contact: there is no counter of frames\n");
  std::exit(1);
}

class Contacts : public MessageEndpoint {
 public:
  Contacts() { must(fi_enable(endpoint_), "fi_enable"); }
  fid_ep* endpoint() { return endpoint_; }

  /// Also when a call answers that there is no capacity.
  std::size_t progress() {
    fi_cq_msg_entry entries[16];
    const long got = fi_cq_read(cq_, entries, 16);
    if (got == -FI_EAGAIN) return 0;
    if (got == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      must(fi_cq_readerr(cq_, &error, 0), "fi_cq_readerr");
      std::fprintf(stderr, "first_contact: %s\n",
                   fi_cq_strerror(cq_, error.prov_errno, error.err_data, nullptr, 0));
      std::exit(1);
    }
    must(got, "fi_cq_read");
    return static_cast<std::size_t>(got);
  }
};

}  // namespace

int main() {
  Contacts own;
  std::printf("%s\n", own.name().c_str());
  std::fflush(stdout);
  std::vector<fi_addr_t> peers;
  for (std::string line; std::getline(std::cin, line) && !line.empty();) peers.push_back(own.insert(line));
  std::vector<std::uint64_t> received(peers.size());
  std::vector<fi_context> contexts(2 * peers.size());
  std::size_t ended = 0;
  const auto post = [&](auto&& call) {
    long status;
    while ((status = call()) == -FI_EAGAIN) ended += own.progress();
    must(status, "posting");
  };
  for (std::size_t i = 0; i < peers.size(); ++i) {
    post([&] { return fi_recv(own.endpoint(), &received[i], 8, nullptr, FI_ADDR_UNSPEC, &contexts[2 * i]); });
    post([&] { return fi_send(own.endpoint(), &contexts, 8, nullptr, peers[i], &contexts[2 * i + 1]); });
  }
  while (ended < 2 * peers.size()) ended += own.progress();
  std::printf("done %d %llu\n", open_descriptors(),
              static_cast<unsigned long long>(frames_sent(own.endpoint())));
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) own.progress();
  fi_close(&own.endpoint()->fid);
  return 0;
}
