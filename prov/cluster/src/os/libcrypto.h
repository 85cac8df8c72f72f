// Implements the primitives of crypto/ with OpenSSL's libcrypto. Implements AES-128-GCM with Intel's
// Multi-Buffer Crypto for IPsec (libIPSec_MB) if this library is installed. The plugin loads both libraries
// with dlopen() when the first key is used. Therefore the plugin needs neither library unless an endpoint has
// a key, and works with several versions. The plugin never unloads the libraries, because objects of the
// libraries may exist until the process ends.
#pragma once

#include <memory>
#include <string>

#include "crypto/cryptography.h"

namespace cluster::os {

/// Loads libcrypto, version 3 or 1.1. If loading fails, or if the library computes wrong test results,
/// returns null and writes the cause to `reason`.
std::shared_ptr<const crypto::Cryptography> load_libcrypto(std::string& reason);

/// Returns a Cryptography that uses libIPSec_MB for AES-128-GCM, and `other` for everything else. Returns
/// `other` itself in three cases: `other` is null, libIPSec_MB cannot be used on this machine, or libIPSec_MB
/// computes different results. libIPSec_MB seals a frame three to five times as fast as libcrypto, because it
/// uses the wide AES instructions of newer processors, and one call does all the work.
std::shared_ptr<const crypto::Cryptography> prefer_ipsec_mb(
    std::shared_ptr<const crypto::Cryptography> other);

}  // namespace cluster::os
