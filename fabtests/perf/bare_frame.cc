// Small frames between two nodes, by each way that the kernel offers to a packet socket.
#include <algorithm>
#include <vector>

#include "bare.h"
#include "wire.h"

namespace perf {
namespace {

constexpr std::size_t kFrameMin = 60;
constexpr std::size_t kFrameMax = 1514;

/// The same frame again and again.
class Frames {
 public:
  Frames(const WireChoice& choice, ControlConnection& line, std::size_t bytes, unsigned window)
      : wire_(choice, line, kFrameMax + kVnetBytes, window) {
    const std::size_t size = std::clamp(bytes, kFrameMin, kFrameMax);
    const std::size_t payload = size - headers_bytes(choice);
    frame_ = headers(choice, wire_.own, wire_.other, payload, 0);
    frame_.resize(frame_.size() + payload);
  }

  void send(unsigned count) {
    const iovec whole{frame_.data(), frame_.size()};
    for (unsigned i = 0; i < count; ++i) wire_.sender.add({&whole, 1});
    wire_.sender.flush();
  }
  void receive(unsigned count) {
    for (unsigned i = 0; i < count; ++i) wire_.receiver.receive();
  }

 private:
  Wire wire_;
  std::vector<char> frame_;
};

}  // namespace

Benchmark frame_measure(const Item& item, ControlConnection& line, const WireChoice& choice) {
  const bool alone = item.measure == "frame";
  const unsigned window = alone ? 1 : item.window;
  const auto frames = std::make_shared<Frames>(choice, line, item.bytes, window);
  Benchmark work;
  work.figure = alone ? Figure::one_way_us : Figure::messages_per_second;
  work.messages = alone ? 2 : window;
  work.bytes = work.messages * static_cast<double>(item.bytes);
  work.lead = [frames, window](std::uint64_t) {
    frames->send(window);
    frames->receive(1);
  };
  work.follow = [frames, window](std::uint64_t) {
    frames->receive(window);
    frames->send(1);
  };
  return work;
}

}  // namespace perf
