// An endpoint that reads commands, one per line, executes them, and is idle in between, like a process that computes.
// It uses only libfabric's interface.
//
//   name           prints the endpoint's address, as hex digits
//   peer HEX       the one to talk to from now on
//   send N B       sends N messages of B bytes and waits until the peer's library has them
//   receive N      takes N messages, whose bytes must be those that were sent
//
// It answers each command with one line, and ends when its input ends.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "message_endpoint.h"

namespace {

using fabtests::MessageEndpoint;
using fabtests::must;

constexpr std::size_t kBytesMax = 1 << 20;

class ScriptedEndpoint : public MessageEndpoint {
 public:
  ScriptedEndpoint() { must(fi_enable(endpoint_), "fi_enable"); }
  ~ScriptedEndpoint() {
    close_endpoint();
    must(fi_close(&fabric_->fid), "fi_close");
  }

  void peer(const std::string& digits) { peer_ = insert(digits); }

  void send(int count, std::size_t bytes) {
    const unsigned first = ++orders_;
    for (std::size_t i = 0; i < bytes; ++i) buffer_[i] = expected(first, i);
    for (int i = 0; i < count; ++i) {
      complete([&] { return fi_send(endpoint_, buffer_.data(), bytes, nullptr, peer_, nullptr); });
    }
  }

  void receive(int count) {
    for (int i = 0; i < count; ++i) {
      std::fill(buffer_.begin(), buffer_.end(), 0);
      const std::size_t size = complete([&] {
        return fi_recv(endpoint_, buffer_.data(), buffer_.size(), nullptr, FI_ADDR_UNSPEC, nullptr);
      });
      for (std::size_t j = 1; j < size; ++j) {
        if (buffer_[j] != expected(buffer_[0], j)) must(-FI_EIO, "a message with other bytes than were sent");
      }
    }
  }

 private:
  /// Byte `at` of a message, computed from the first byte.
  static unsigned char expected(unsigned first, std::size_t at) {
    return static_cast<unsigned char>(first + at * 7 + at / 256);
  }

  /// The bytes of the completed operation.
  template <typename Post>
  std::size_t complete(Post&& post) {
    fi_cq_msg_entry entry{};
    long status;
    while ((status = post()) == -FI_EAGAIN) fi_cq_read(cq_, &entry, 0);
    must(status, "post");
    while ((status = fi_cq_read(cq_, &entry, 1)) == -FI_EAGAIN) continue;
    must(status, "fi_cq_read");
    return entry.len;
  }

  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  unsigned orders_ = 0;
  std::vector<unsigned char> buffer_ = std::vector<unsigned char>(kBytesMax);
};

}  // namespace

int main() {
  ScriptedEndpoint scripted;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string order, argument;
    std::size_t bytes = 0;
    words >> order >> argument >> bytes;
    if (order == "peer") scripted.peer(argument);
    if (order == "send") scripted.send(std::atoi(argument.c_str()), std::min(bytes, kBytesMax));
    if (order == "receive") scripted.receive(std::atoi(argument.c_str()));
    std::cout << (order == "name" ? scripted.name() : "done") << std::endl;
  }
}
