// A ring of shared memory whose peer is hostile: the reader while anything is written anywhere between two
// reads, the writer while the reader's position is anything, and the message that introduces a ring. The
// first choice of an input says which: most inputs are about the ring, whose depth lies in long rows of
// steps.
#include <fuzzer/FuzzedDataProvider.h>

#include "shm/hello.h"
#include "shm/ring_reader.h"
#include "shm/ring_writer.h"
#include "unit/shm/ring_memory.h"

namespace {

using namespace cluster;
using namespace cluster::shm;

void corrupt(FuzzedDataProvider& input, RingMemory& memory) {
  const Bytes bytes = memory.bytes();
  // Mostly where it matters: the control page and the first slots.
  const std::size_t most =
      input.ConsumeBool() ? memory.geometry.slots_begin() + 8 * sizeof(Slot) : bytes.size();
  const auto at = input.ConsumeIntegralInRange<std::size_t>(0, most - 1);
  const auto words = input.ConsumeBytes<std::uint8_t>(input.ConsumeIntegralInRange<std::size_t>(1, 64));
  if (!words.empty()) std::memcpy(bytes.data() + at, words.data(), std::min(words.size(), bytes.size() - at));
}

std::size_t peek(RingReader& reader) {
  wire::Segment segment;
  ConstBytes payload;
  if (!reader.peek(segment, payload)) return 0;
  if (payload.size() != segment.length) __builtin_trap();
  std::size_t sum = 0;
  for (const std::byte byte : payload) sum += std::to_integer<std::size_t>(byte);
  return sum + 1;
}

/// The same for the fast lane; 0: it is left to peek().
std::size_t peek_short(RingReader& reader) {
  ShortMessage message;
  if (!reader.peek_short(message)) return 0;
  if (message.header.length > kSmall.arena_bytes) __builtin_trap();
  std::size_t sum = 0;
  for (std::size_t i = 0; i < message.header.length; ++i)
    sum += std::to_integer<std::size_t>(message.payload[i]);
  return sum + 1;
}

/// A message that was right until some of its bytes were changed. What is believed of it must make sense.
void read_hello(FuzzedDataProvider& input) {
  constexpr std::byte kIp[] = {std::byte{10}, std::byte{0}, std::byte{0}, std::byte{1}};
  Hello hello(SocketAddress::v4(kIp, 5000), input.ConsumeIntegral<std::uint64_t>(), kSmall);
  auto* const bytes = reinterpret_cast<std::byte*>(&hello);
  while (input.remaining_bytes() > 0) {
    const auto at = input.ConsumeIntegralInRange<std::size_t>(0, sizeof hello - 1);
    bytes[at] = static_cast<std::byte>(input.ConsumeIntegral<std::uint8_t>());
  }
  if (hello.valid() && (!hello.geometry.valid() || hello.writer().empty())) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  if (input.ConsumeIntegralInRange<int>(0, 7) == 0) {
    read_hello(input);
    return 0;
  }
  RingMemory memory;
  RingWriter writer(memory.bytes(), memory.geometry);
  RingReader reader(memory.bytes(), memory.geometry);
  volatile std::size_t seen = 0;
  for (std::uint64_t number = 0; input.remaining_bytes() > 0; ++number) {
    switch (input.ConsumeIntegralInRange<int>(0, 4)) {
      case 0:
      case 1: {
        const Message message(number, input.ConsumeIntegralInRange<std::size_t>(0, writer.payload_max()));
        static_cast<void>(writer.post(message.segment, message.gather()));
        break;
      }
      case 2: corrupt(input, memory); break;
      default: {
        std::size_t sum = number % 2 == 0 ? peek_short(reader) : 0;
        if (sum == 0) sum = peek(reader);
        seen = seen + sum;
        if (sum != 0) reader.pop();
      }
    }
  }
  return 0;
}
