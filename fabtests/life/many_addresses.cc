// A million addresses in an address vector: how long fi_av_insert takes and how much memory each costs. Fails beyond
// the bounds of the manual: a second of processor time, and 32 bytes.
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t kAddresses = 1'000'000;
constexpr double kSecondsMax = 1, kBytesMax = 32;

void must(long status, const char* what) {
  if (status >= 0) return;
  std::fprintf(stderr, "many_addresses: %s: %s\n", what, fi_strerror(static_cast<int>(-status)));
  std::exit(1);
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// Memory of this process that is there, in bytes.
double resident() {
  unsigned long all = 0, there = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%lu %lu", &all, &there) != 2) std::exit(1);
  std::fclose(file);
  return static_cast<double>(there) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// 10.0.0.0/8 with two ports at each: as nodes with many ranks.
std::vector<sockaddr_in> addresses() {
  std::vector<sockaddr_in> all(kAddresses);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].sin_family = AF_INET;
    all[i].sin_addr.s_addr = htonl(static_cast<std::uint32_t>(0x0a000001 + i / 2));
    all[i].sin_port = htons(static_cast<std::uint16_t>(9228 + i % 2));
  }
  return all;
}

}  // namespace

int main() {
  fi_info* hints = fi_allocinfo();
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = strdup("cluster");
  hints->addr_format = FI_SOCKADDR_IN;
  fi_info* info = nullptr;
  must(fi_getinfo(FI_VERSION(1, 15), nullptr, nullptr, 0, hints, &info), "fi_getinfo");
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fi_av_attr attributes{};
  must(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
  must(fi_domain(fabric, info, &domain, nullptr), "fi_domain");
  must(fi_av_open(domain, &attributes, &av, nullptr), "fi_av_open");
  const std::vector<sockaddr_in> all = addresses();
  std::vector<fi_addr_t> handles(all.size(), FI_ADDR_NOTAVAIL);
  const double memory = resident(), began = processor_seconds();
  const int inserted = fi_av_insert(av, all.data(), all.size(), handles.data(), 0, nullptr);
  const double seconds = processor_seconds() - began;
  const double bytes = (resident() - memory) / static_cast<double>(all.size());
  std::printf("%d addresses: %.3f s of processor time, %.1f bytes each\n", inserted, seconds, bytes);
  bool good = inserted == static_cast<int>(all.size()) && seconds < kSecondsMax && bytes < kBytesMax;
  for (std::size_t i = 0; i < all.size(); i += 997) {
    sockaddr_in there{};
    std::size_t size = sizeof there;
    good &= fi_av_lookup(av, handles[i], &there, &size) == 0 && there.sin_port == all[i].sin_port &&
            there.sin_addr.s_addr == all[i].sin_addr.s_addr;
  }
  fi_close(&av->fid);
  fi_close(&domain->fid);
  fi_close(&fabric->fid);
  fi_freeinfo(info);
  fi_freeinfo(hints);
  return good ? 0 : 1;
}
