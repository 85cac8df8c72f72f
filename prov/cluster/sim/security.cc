#include "sim/security.h"

#include <memory>
#include <stdexcept>

#include "os/libcrypto.h"

namespace cluster::sim {
namespace {

constexpr std::uint8_t kRealm = 2;  ///< of the key that the hosts have in common

using KeyPointer = std::shared_ptr<const seal::JobKey>;

KeyPointer make_key(const std::shared_ptr<const crypto::Cryptography>& library, SeededRandom& random) {
  std::array<std::uint64_t, 4> material;
  for (std::uint64_t& word : material) word = random.next();
  const auto key = std::make_shared<seal::JobKey>(library);
  if (!key->derive(as_bytes(material.data(), sizeof material))) throw std::runtime_error("libcrypto makes no key");
  return key;
}

}  // namespace

std::vector<std::string_view> security_names() { return {"none", "auth", "encrypt", "realms"}; }

std::string draw_security(const std::string& wanted, std::vector<HostProfile>& hosts, SeededRandom& random) {
  const bool drawn = random.chance(500'000);
  if (wanted == "none") return "";
  if (wanted != "auth" && wanted != "encrypt" && wanted != "any" && wanted != "realms")
    throw std::invalid_argument("no security is called " + wanted);
  std::string reason;
  const std::shared_ptr<const crypto::Cryptography> library = os::load_libcrypto(reason);
  if (library == nullptr) throw std::invalid_argument(reason);
  const bool encrypts = wanted == "encrypt" || ((wanted == "any" || wanted == "realms") && drawn);
  const KeyPointer common = make_key(library, random);
  const KeyPointer other = make_key(library, random);
  const bool changes = random.chance(500'000);
  for (HostProfile& host : hosts) {
    seal::Credentials& credentials = host.credentials.emplace();
    credentials.mode = encrypts ? seal::Mode::encrypt : seal::Mode::auth;
    credentials.keys = {common};
    if (wanted == "realms") {
      credentials.keys = {other, common};
      credentials.realms = {1, kRealm};
      continue;
    }
    if (changes && random.chance(600'000))
      credentials.keys.insert(random.chance(500'000) ? credentials.keys.begin() : credentials.keys.end(), other);
  }
  return std::string(encrypts ? "encrypt" : "auth") + (wanted == "realms" ? ", a key for each peer" : changes ? ", two keys" : "");
}

std::uint8_t realm_of_all(const std::vector<HostProfile>& hosts) {
  const std::optional<seal::Credentials>& first = hosts.front().credentials;
  return first && !first->realms.empty() ? kRealm : 0;
}

}  // namespace cluster::sim
