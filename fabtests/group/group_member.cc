// A member of a multicast group that executes the commands on its standard input, one per line, and prints the results:
//
//   group_member ADDRESS PORT                 -> name HEX
//   peers HEX...                              the names of all members, its own as well
//   join                                      -> joined
//   send COUNT SIZE                           -> sent SECONDS FAILED
//   receive FROM COUNT SIZE                   -> ready, then received COUNT
//   events                                    -> lost N: peers reported as lost so far
//   leave                                     -> left
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_tagged.h>

#include <chrono>
#include <iostream>
#include <sstream>

#include "../message_endpoint.h"

namespace {

using fabtests::must;

constexpr std::uint64_t kCapabilities = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_MULTICAST;

unsigned char byte_of(std::uint64_t message, std::size_t i) {
  return static_cast<unsigned char>((message + 1) * 167 + i * 31 + (i >> 8));
}

class GroupMember : private fabtests::MessageEndpoint {
 public:
  GroupMember(const char* address, const char* port) : MessageEndpoint(kCapabilities) {
    address_.sin_family = AF_INET;
    address_.sin_port = htons(static_cast<std::uint16_t>(std::strtoul(port, nullptr, 10)));
    if (inet_pton(AF_INET, address, &address_.sin_addr) != 1) must(-FI_EINVAL, "address");
    fi_eq_attr events{};
    events.wait_obj = FI_WAIT_NONE;
    must(fi_eq_open(fabric_, &events, &events_, nullptr), "fi_eq_open");
    must(fi_ep_bind(endpoint_, &events_->fid, 0), "fi_ep_bind");
    must(fi_enable(endpoint_), "fi_enable");
    std::cout << "name " << name() << std::endl;
  }
  ~GroupMember() {
    close_endpoint();
    must(fi_close(&events_->fid), "fi_close");
    must(fi_close(&fabric_->fid), "fi_close");
  }
  GroupMember(const GroupMember&) = delete;
  GroupMember& operator=(const GroupMember&) = delete;

  void run() {
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream words(line);
      std::string word;
      words >> word;
      if (word == "peers") {
        for (std::string digits; words >> digits;) peers_.push_back(insert(digits));
      } else if (word == "join") {
        join();
      } else if (word == "send") {
        std::size_t count = 0, size = 0;
        words >> count >> size;
        send(count, size);
      } else if (word == "receive") {
        std::size_t from = 0, count = 0, size = 0;
        words >> from >> count >> size;
        receive(from, count, size);
      } else if (word == "events") {
        read_events();
        std::cout << "lost " << lost_ << std::endl;
      } else if (word == "leave") {
        must(fi_close(&group_->fid), "fi_close of the group");
        group_ = nullptr;
        std::cout << "left" << std::endl;
      }
    }
    if (group_ != nullptr) must(fi_close(&group_->fid), "fi_close of the group");
  }

 private:
  void read_events() {
    std::uint32_t event = 0;
    unsigned char entry[512];
    while (fi_eq_read(events_, &event, entry, sizeof entry, 0) >= 0) {
      joined_ |= event == FI_JOIN_COMPLETE;
      lost_ += event == FI_SHUTDOWN ? 1 : 0;
    }
  }
  /// True for a completion, whose context is put into `context`.
  bool poll(void*& context) {
    fi_cq_msg_entry entry{};
    const ssize_t got = fi_cq_read(cq_, &entry, 1);
    if (got == 1) {
      context = entry.op_context;
      return true;
    }
    if (got == -FI_EAGAIN) return false;
    fi_cq_err_entry failure{};
    must(fi_cq_readerr(cq_, &failure, 0), "fi_cq_readerr");
    context = failure.op_context;
    ++failed_;
    return true;
  }
  void join() {
    joined_ = false;
    must(fi_join(endpoint_, &address_, 0, &group_, nullptr), "fi_join");
    void* context = nullptr;
    while (!joined_) {
      poll(context);
      read_events();
    }
    std::cout << "joined" << std::endl;
  }
  void send(std::size_t count, std::size_t size) {
    failed_ = 0;
    std::vector<std::vector<unsigned char>> messages(count, std::vector<unsigned char>(size));
    for (std::size_t m = 0; m < count; ++m) {
      for (std::size_t i = 0; i < size; ++i) messages[m][i] = byte_of(m, i);
    }
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t m = 0; m < count; ++m) {
      ssize_t status;
      void* context = nullptr;
      while ((status = fi_tsend(endpoint_, messages[m].data(), size, nullptr, fi_mc_addr(group_), m,
                                &messages[m])) == -FI_EAGAIN) {
        done_ += poll(context) ? 1 : 0;
      }
      must(status, "fi_tsend");
    }
    await(count);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::cout << "sent " << took.count() << " " << failed_ << std::endl;
  }
  void receive(std::size_t from, std::size_t count, std::size_t size) {
    std::vector<std::vector<unsigned char>> buffers(count, std::vector<unsigned char>(size));
    for (std::size_t m = 0; m < count; ++m) {
      must(fi_trecv(endpoint_, buffers[m].data(), size, nullptr, peers_.at(from), m, 0, &buffers[m]),
           "fi_trecv");
    }
    std::cout << "ready" << std::endl;
    await(count);
    for (std::size_t m = 0; m < count; ++m) {
      for (std::size_t i = 0; i < size; ++i) {
        if (buffers[m][i] == byte_of(m, i)) continue;
        std::fprintf(stderr, "byte %zu of message %zu is wrong\n", i, m);
        std::exit(1);
      }
    }
    std::cout << "received " << count << std::endl;
  }
  void await(std::size_t count) {
    void* context = nullptr;
    while (done_ < count) done_ += poll(context) ? 1 : 0;
    done_ -= count;
  }

  sockaddr_in address_{};
  fid_eq* events_ = nullptr;
  fid_mc* group_ = nullptr;
  std::vector<fi_addr_t> peers_;
  bool joined_ = false;
  unsigned lost_ = 0;
  std::size_t failed_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
    return 1;
  }
  GroupMember(argv[1], argv[2]).run();
  return 0;
}
