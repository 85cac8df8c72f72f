#include "wire/opening.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>

#include "wire/frame.h"

namespace cluster::wire {

namespace {

SocketAddress address_in(std::uint8_t family, const std::uint8_t* ip, std::uint16_t port,
                         std::uint32_t scope) {
  const auto* bytes = reinterpret_cast<const std::byte*>(ip);
  if (family == 4) return SocketAddress::v4(bytes, port);
  return family == 6 ? SocketAddress::v6(bytes, port, scope) : SocketAddress{};
}

void put_ip(const SocketAddress& address, std::uint8_t* out) {
  const ConstBytes ip = address.ip();
  std::copy(ip.begin(), ip.end(), reinterpret_cast<std::byte*>(out));
}

std::uint8_t family_of(const SocketAddress& address) {
  return address.family() == SocketAddress::Family::v4 ? 4 : 6;
}

RailBlock block_at(ConstBytes blocks, std::size_t at) {
  RailBlock block;
  std::memcpy(&block, blocks.data() + at, sizeof block);
  return block;
}

/// Returns the size of the RailBlocks after the OpeningBlock: further addresses, and a sibling.
std::size_t listed_size(std::uint8_t rails, std::uint32_t features) {
  return (rails + ((features & feature::kSibling) != 0 ? std::size_t{1} : 0)) * sizeof(RailBlock);
}

constexpr std::size_t kMtuLeast = 128;  ///< half of the MTU that has the code 1
constexpr std::uint8_t kMtuCodeMax = 5;

VerbsBlock verbs_at(const std::byte* at) {
  VerbsBlock block;
  std::memcpy(&block, at, sizeof block);
  return block;
}

/// Checks the blocks of queue pairs at the start of `in`. Returns their size, or nothing if they are invalid.
std::optional<std::size_t> checked_verbs(ConstBytes in) {
  std::size_t size = 0;
  for (std::size_t left = 1; left != 0; --left, size += sizeof(VerbsBlock)) {
    if (in.size() < size + sizeof(VerbsBlock)) return std::nullopt;
    const VerbsBlock block = verbs_at(in.data() + size);
    if (size == 0) left += block.more;
    if (block.kind != static_cast<std::uint8_t>(Gid::roce_v2)) continue;
    const bool no_gid = std::ranges::all_of(block.gid, [](std::uint8_t byte) { return byte == 0; });
    if (!is_queue_pair_number(block.queue_pair) || no_gid || block.mtu == 0 || block.mtu > kMtuCodeMax)
      return std::nullopt;
  }
  return size;
}

}  // namespace

bool is_endpoint_address(const SocketAddress& address) {
  return !address.empty() && !address.wildcard() && !address.multicast() && address.port() != 0;
}

SocketAddress address_of(const RailBlock& block, std::uint32_t scope) {
  return address_in(block.family, block.ip, block.port, scope);
}

bool valid_rails(ConstBytes blocks) {
  for (std::size_t at = 0; at < blocks.size(); at += sizeof(RailBlock)) {
    if (!is_endpoint_address(address_of(block_at(blocks, at), 0))) return false;
  }
  return true;
}

void encode(const Opening& opening, OpeningBlock& out) {
  out = OpeningBlock{};
  out.size = static_cast<std::uint16_t>(sizeof(OpeningBlock) + listed_size(opening.rails, opening.features) +
                                        opening.verbs * sizeof(VerbsBlock));
  out.version_min = out.version_max = kVersion;
  out.session = opening.session;
  out.epoch = opening.epoch;
  out.family = family_of(opening.name);
  out.rails = opening.rails;
  out.port = opening.name.port();
  out.scope = opening.name.scope();
  put_ip(opening.name, out.ip);
  out.features = static_cast<std::uint16_t>(opening.features);
  out.incarnation = opening.incarnation;
  out.frame_max = opening.frame_max;
  out.window = opening.window;
  out.token = opening.token;
  out.echo = opening.echo;
}

std::size_t decode(ConstBytes in, Opening& out, ConstBytes& rails) {
  if (in.size() < sizeof(OpeningBlock)) return 0;
  OpeningBlock block;
  std::memcpy(&block, in.data(), sizeof block);
  const std::size_t size = block.size;
  const std::size_t listed = listed_size(block.rails, block.features);
  if (size < sizeof block + listed || size > in.size()) return 0;
  if (block.version_min > kVersion || block.version_max < kVersion) return 0;
  out.name = address_in(block.family, block.ip, block.port, block.scope);
  out.session = block.session;
  out.epoch = block.epoch;
  out.rails = block.rails;
  out.features = block.features;
  out.incarnation = block.incarnation;
  out.frame_max = block.frame_max;
  out.window = block.window;
  out.token = block.token;
  out.echo = block.echo;
  rails = in.subspan(sizeof block, block.rails * sizeof(RailBlock));
  const ConstBytes behind = in.first(size).subspan(sizeof block + listed);
  if ((out.features & feature::kVerbs) != 0 && !checked_verbs(behind)) return 0;
  const bool valid = out.session != 0 && out.window != 0 && is_endpoint_address(out.name) &&
                     out.frame_max >= 512 && out.epoch < kEpochEnd &&
                     valid_rails(in.subspan(sizeof block, listed));
  return valid ? size : 0;
}

RailBlock rail_block(const SocketAddress& address) {
  RailBlock block{};
  block.family = family_of(address);
  block.port = address.port();
  put_ip(address, block.ip);
  return block;
}

bool lists(const Opening& opening, ConstBytes rails, const SocketAddress& address) {
  if (opening.name == address) return true;
  if (rails.empty()) return false;
  const std::vector<SocketAddress> further = read_rails(rails);
  return std::find(further.begin(), further.end(), address) != further.end();
}

/// The sibling's block follows the further addresses.
SocketAddress read_sibling(const Opening& opening, ConstBytes rails) {
  if ((opening.features & feature::kSibling) == 0) return {};
  return address_of(block_at({rails.data(), rails.size() + sizeof(RailBlock)}, rails.size()),
                    opening.name.scope());
}

VerbsBlock verbs_block(const VerbsAddress& queue_pair, std::size_t more) {
  VerbsBlock block{};
  block.kind = static_cast<std::uint8_t>(Gid::roce_v2);
  while (block.mtu < kMtuCodeMax && kMtuLeast << (block.mtu + 1) <= queue_pair.frame_max) ++block.mtu;
  block.more = static_cast<std::uint8_t>(more);
  block.queue_pair = queue_pair.address.queue_pair_number();
  put_ip(queue_pair.address, block.gid);
  return block;
}

/// The VerbsBlocks follow the further addresses and the sibling.
std::vector<VerbsAddress> read_verbs(const Opening& opening, ConstBytes rails) {
  std::vector<VerbsAddress> read;
  if ((opening.features & feature::kVerbs) == 0) return read;
  const std::byte* at = rails.data() + listed_size(opening.rails, opening.features);
  for (std::size_t left = std::size_t{1} + verbs_at(at).more; left != 0; --left, at += sizeof(VerbsBlock)) {
    const VerbsBlock block = verbs_at(at);
    if (block.kind != static_cast<std::uint8_t>(Gid::roce_v2) || read.size() == kVerbsMax) continue;
    const auto* gid = reinterpret_cast<const std::byte*>(at + offsetof(VerbsBlock, gid));
    read.push_back({SocketAddress::queue_pair(gid, block.queue_pair), kMtuLeast << block.mtu});
  }
  return read;
}

std::vector<SocketAddress> read_rails(ConstBytes blocks) {
  std::vector<SocketAddress> rails;
  for (std::size_t at = 0; at < blocks.size() && rails.size() + 1 < kRailsMax; at += sizeof(RailBlock)) {
    rails.push_back(address_of(block_at(blocks, at), 0));
  }
  return rails;
}

}  // namespace cluster::wire
