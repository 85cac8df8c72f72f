// What endpoints and peers cost their process. Opens endpoints in one domain and says what each costs before it has
// peers; then reads the names of the endpoints of another such process, exchanges messages with all of them, and
// says what they cost. Ends with its input.
//
//   endpoint_costs COUNT
#include <dirent.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "message_endpoint.h"

namespace {

using fabtests::must;

/// The first endpoints also pay for what the process has once, and for memory that its allocator keeps.
constexpr std::size_t kFirst = 2;
constexpr std::size_t kRounds = 20;
constexpr std::size_t kBytes = 8;

struct Costs {
  long descriptors = 0;
  long kilobytes = 0;  ///< private memory; memory that is shared with peers or with the kernel does not count
};

Costs costs() {
  Costs now;
  DIR* const directory = opendir("/proc/self/fd");
  while (directory != nullptr && readdir(directory) != nullptr) ++now.descriptors;
  closedir(directory);
  std::FILE* const file = std::fopen("/proc/self/smaps_rollup", "r");
  char line[256];
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr)
    std::sscanf(line, "Anonymous: %ld", &now.kilobytes);
  std::fclose(file);
  return now;
}

/// Returns for how many descriptors the kernel's table of this process has space.
long descriptor_table() {
  std::FILE* const file = std::fopen("/proc/self/status", "r");
  char line[256];
  long size = 0;
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr)
    std::sscanf(line, "FDSize: %ld", &size);
  std::fclose(file);
  return size;
}

struct Buffers {
  std::vector<char> sent = std::vector<char>(kBytes), received = std::vector<char>(kBytes);
  fi_context contexts[2];
};

class Endpoints : public fabtests::MessageEndpoint {
 public:
  Endpoints() {
    ends_.push_back({endpoint_, av_, cq_});
    must(fi_enable(endpoint_), "fi_enable");
  }

  void open(std::size_t count) {
    while (ends_.size() < count) {
      End end;
      fi_av_attr av{};
      fi_cq_attr cq{};
      cq.format = FI_CQ_FORMAT_MSG;
      must(fi_av_open(domain_, &av, &end.av, nullptr), "fi_av_open");
      must(fi_cq_open(domain_, &cq, &end.cq, nullptr), "fi_cq_open");
      must(fi_endpoint(domain_, info_, &end.endpoint, nullptr), "fi_endpoint");
      must(fi_ep_bind(end.endpoint, &end.av->fid, 0), "fi_ep_bind");
      must(fi_ep_bind(end.endpoint, &end.cq->fid, FI_SEND | FI_RECV), "fi_ep_bind");
      must(fi_enable(end.endpoint), "fi_enable");
      ends_.push_back(end);
      progress();
    }
  }

  void print_names() {
    for (const End& end : ends_) {
      endpoint_ = end.endpoint;
      std::printf("%s ", name().c_str());
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  void insert_into_all(const std::string& digits) {
    for (const End& end : ends_) {
      av_ = end.av;
      insert(digits);
    }
  }

  void exchange(std::size_t peers, std::vector<Buffers>& all) {
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < all.size(); ++i, wanted += 2) {
      Buffers& one = all[i];
      const End& end = ends_[i / peers];
      const fi_addr_t peer = i % peers;
      post([&] {
        return fi_recv(end.endpoint, one.received.data(), kBytes, nullptr, peer, &one.contexts[0]);
      });
      post([&] { return fi_send(end.endpoint, one.sent.data(), kBytes, nullptr, peer, &one.contexts[1]); });
    }
    while (done_ < wanted) progress();
    done_ = 0;
  }

  void progress() {
    for (const End& end : ends_) {
      fi_cq_msg_entry entries[16];
      const long got = fi_cq_read(end.cq, entries, 16);
      if (got == -FI_EAGAIN) continue;
      must(got, "fi_cq_read");
      done_ += static_cast<std::size_t>(got);
    }
  }

 private:
  struct End {
    fid_ep* endpoint;
    fid_av* av;
    fid_cq* cq;
  };

  template <typename Call>
  void post(const Call& call) {
    long status = 0;
    while ((status = call()) == -FI_EAGAIN) progress();
    must(status, "posting");
  }

  std::vector<End> ends_;
  std::size_t done_ = 0;
};

}  // namespace

int main(int, char** arguments) {
  const auto count = static_cast<std::size_t>(std::atol(arguments[1]));
  Endpoints own;
  own.open(kFirst);
  const long table = descriptor_table();
  Costs before = costs();
  own.open(kFirst + count);
  Costs after = costs();
  std::printf("%ld %ld %ld\n", after.descriptors - before.descriptors, after.kilobytes - before.kilobytes,
              table);
  own.print_names();

  std::string line;
  std::getline(std::cin, line);
  std::istringstream names(line);
  std::size_t peers = 0;
  for (std::string digits; names >> digits; ++peers) own.insert_into_all(digits);
  std::vector<Buffers> buffers((kFirst + count) * peers);
  before = costs();
  for (std::size_t i = 0; i < kRounds; ++i) own.exchange(peers, buffers);
  after = costs();
  std::printf("%zu %ld %ld\n", buffers.size(), after.descriptors - before.descriptors,
              after.kilobytes - before.kilobytes);
  std::fflush(stdout);
  while (std::getline(std::cin, line)) own.progress();
  return 0;
}
