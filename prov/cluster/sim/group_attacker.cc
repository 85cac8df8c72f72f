#include "sim/group_attacker.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "seal/group_seal.h"
#include "wire/admit.h"

namespace cluster::sim {
namespace {

constexpr std::size_t kHeader = sizeof(wire::FrameHeader);
constexpr std::size_t kBlockEnd = kHeader + sizeof(seal::GroupSealBlock);
constexpr std::size_t kSealedMin = kBlockEnd + sizeof(wire::SealTrailer);

wire::FrameHeader header_of(const std::vector<std::byte>& bytes) {
  wire::FrameHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

void set_header(std::vector<std::byte>& bytes, wire::FrameHeader header) {
  header.length = static_cast<std::uint16_t>(bytes.size());
  std::memcpy(bytes.data(), &header, sizeof header);
}

}  // namespace

GroupAttacker::GroupAttacker(GroupNetwork& network, std::vector<SocketAddress> hosts, SeededRandom random)
    : network_(network),
      hosts_(std::move(hosts)),
      random_(random),
      rate_(random_.pick(std::array<std::uint32_t, 4>{2'000, 20'000, 100'000, 300'000})) {}

void GroupAttacker::see(const SocketAddress& from, const std::vector<std::byte>& bytes) {
  if (bytes.size() < kSealedMin) return;
  if (kept_.size() < kKept) {
    kept_.push_back({from, bytes});
  } else if (random_.chance(kMillion / 10)) {
    kept_[random_.below(kKept)] = {from, bytes};
  }
  if (!random_.chance(rate_)) return;
  Seen made = random_.chance(kMillion / 2) ? Seen{from, bytes} : kept_[random_.below(kept_.size())];
  if (random_.chance(kMillion * 7 / 10)) forge(made);
  const Duration delay =
      random_.chance(kMillion * 7 / 10) ? random_.between(0us, 1ms) : random_.between(1ms, 1s);
  const bool to_all = random_.chance(kMillion / 2);
  for (const SocketAddress& host : hosts_) {
    if (!to_all && !random_.chance(static_cast<std::uint32_t>(kMillion / hosts_.size()))) continue;
    network_.inject(made.from, host, made.bytes, delay);
    ++frames_;
  }
}

void GroupAttacker::forge(Seen& frame) {
  switch (random_.below(5)) {
    case 0: frame.from = hosts_[random_.below(hosts_.size())]; return;
    case 1: return splice(frame.bytes);
    case 2:
    case 3: return unseal(frame.bytes);
    default: return alter(frame.bytes);
  }
}

/// Flips a few bits anywhere, or changes the counter a little.
void GroupAttacker::alter(std::vector<std::byte>& bytes) {
  if (random_.chance(kMillion / 5)) {
    wire::SealTrailer trailer;
    std::byte* const at = bytes.data() + bytes.size() - sizeof trailer;
    std::memcpy(&trailer, at, sizeof trailer);
    trailer.counter = trailer.counter + random_.between(1, 2000) - (random_.chance(kMillion / 2) ? 1000 : 0);
    std::memcpy(at, &trailer, sizeof trailer);
    return;
  }
  for (std::uint64_t flips = random_.between(1, 3); flips-- > 0;) {
    const std::size_t at = random_.below(random_.chance(kMillion / 2) ? kBlockEnd : bytes.size());
    bytes[at] ^= std::byte{1} << static_cast<int>(random_.below(8));
  }
}

/// Makes a frame without a seal, at one of the next places of the stream. In mode auth the attacker can read
/// the content, so the frame is nearly right.
void GroupAttacker::unseal(std::vector<std::byte>& bytes) {
  bytes.resize(bytes.size() - sizeof(wire::SealTrailer));
  bytes.erase(bytes.begin() + kHeader, bytes.begin() + kBlockEnd);
  if (bytes.size() > kHeader) bytes[kHeader + random_.below(bytes.size() - kHeader)] ^= std::byte{1};
  wire::FrameHeader header = header_of(bytes);
  header.flags &= static_cast<std::uint8_t>(~wire::frame_flag::kSealed);
  header.sequence = static_cast<std::uint32_t>(header.sequence + random_.below(3));
  header.ack = header.sequence + 1;
  set_header(bytes, header);
  const ConstBytes whole(bytes);
  header.checksum = wire::frame_checksum({&whole, 1});
  set_header(bytes, header);
}

/// Puts the header of this frame before the content of another.
void GroupAttacker::splice(std::vector<std::byte>& bytes) {
  std::vector<std::byte> other = kept_[random_.below(kept_.size())].bytes;
  set_header(other, header_of(bytes));
  bytes = std::move(other);
}

}  // namespace cluster::sim
