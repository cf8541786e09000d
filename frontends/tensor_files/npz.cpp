// Through libzip, which reads the directory; what it declares is held against the size of the file
// before memory is reserved for it (zip bombs).
#include "frontends/tensor_files/npz.h"

#include <zip.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "frontends/tensor_files/convert_layout.h"
#include "frontends/tensor_files/npy.h"
#include "runtime/core/open_file.h"

namespace tilewright {
namespace {

// Deflate cannot do better than 1032 to 1; a larger ratio is a false length.
constexpr uint64_t kMaxDeflateRatio = 1032;
constexpr std::string_view kSuffix = ".npy";
constexpr uint16_t kDosDate1980 = (1 << 5) | 1;

struct DiscardArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseEntry {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, DiscardArchive>;
using Entry = std::unique_ptr<zip_file_t, CloseEntry>;

Result<Archive> opened(zip_t* opened_archive, int code, const std::string& path) {
  Archive archive(opened_archive);
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (code == ZIP_ER_NOZIP || code == ZIP_ER_INCONS)
    return invalid("not a zip archive, or truncated: " + text, path);
  return io_error("cannot open archive: " + text, path);
}

Result<Archive> read_archive(InputFile file, const std::string& path) {
  int code = 0;
  zip_t* archive = zip_fdopen(file.descriptor.get(), 0, &code);
  if (archive) file.descriptor.release();
  return opened(archive, code, path);
}

Status check_entry(const zip_stat_t& entry, uint64_t archive_bytes) {
  constexpr uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                               ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  if ((entry.valid & kNeeded) != kNeeded) return invalid("zip entry without name or sizes");
  std::string_view name = entry.name;
  if (!name.ends_with(kSuffix))
    return invalid("zip entry '" + std::string(name) + "' is not a .npy array");
  if (entry.encryption_method != ZIP_EM_NONE) return unsupported("encrypted zip entry");
  if (entry.comp_method != ZIP_CM_STORE && entry.comp_method != ZIP_CM_DEFLATE)
    return unsupported("zip compression method " + std::to_string(entry.comp_method) +
                       ", expected stored or deflated");
  bool stored = entry.comp_method == ZIP_CM_STORE;
  if (entry.comp_size > archive_bytes || (stored && entry.size != entry.comp_size) ||
      (!stored && entry.size / kMaxDeflateRatio > entry.comp_size))
    return invalid("zip entry declares " + std::to_string(entry.size) + " bytes, of which " +
                   std::to_string(entry.comp_size) + " are stored in an archive of " +
                   std::to_string(archive_bytes));
  return {};
}

// zip_fread may return less than it is asked for.
Status read_exactly(zip_file_t* file, uint8_t* to, size_t bytes) {
  while (bytes > 0) {
    zip_int64_t got = zip_fread(file, to, bytes);
    if (got < 0) return invalid(std::string("damaged zip entry: ") + zip_file_strerror(file));
    if (got == 0) return invalid("zip entry ends early");
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return {};
}

// One entry: the prefix, which says how long the header is, the header, and the elements straight
// into the tensor.
Result<HostTensor> read_array(zip_file_t* file, uint64_t entry_bytes) {
  std::vector<uint8_t> header(std::min<uint64_t>(kNpyPrefixBytes, entry_bytes));
  TW_RETURN_IF_ERROR(read_exactly(file, header.data(), header.size()));
  size_t prefix = header.size();
  TW_ASSIGN(size_t length, npy_header_length(header));
  if (length > entry_bytes || length < prefix) return invalid("npy header is truncated");
  header.resize(length);
  TW_RETURN_IF_ERROR(read_exactly(file, header.data() + prefix, length - prefix));
  TW_ASSIGN(NpyHeader npy, parse_npy_header(header));
  if (npy.data_bytes != entry_bytes - length)
    return invalid("npy array has " + std::to_string(entry_bytes - length) +
                   " bytes of data, shape " + to_string(npy.shape) + " of " +
                   std::string(name(npy.dtype)) + " needs " + std::to_string(npy.data_bytes));
  HostTensor tensor(npy.dtype, std::move(npy.shape));
  TW_RETURN_IF_ERROR(read_exactly(file, tensor.bytes.data(), tensor.bytes.size()));
  // Only the read that meets the end makes libzip compare the checksum.
  uint8_t beyond = 0;
  zip_int64_t rest = zip_fread(file, &beyond, 1);
  if (rest < 0) return invalid(std::string("damaged zip entry: ") + zip_file_strerror(file));
  if (rest > 0) return invalid("zip entry is longer than declared");
  if (npy.big_endian) swap_byte_order(tensor);
  if (npy.fortran_order) fortran_to_row_major(tensor);
  normalize_bools(tensor);
  return tensor;
}

// In the order of the central directory.
Result<NamedTensors> read_entries(zip_t* archive, uint64_t archive_bytes) {
  NamedTensors tensors;
  std::set<std::string> names;
  uint64_t total = 0;
  zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t entry;
    if (zip_stat_index(archive, static_cast<zip_uint64_t>(i), 0, &entry) != 0)
      return invalid(std::string("damaged zip directory: ") + zip_strerror(archive));
    TW_RETURN_IF_ERROR(check_entry(entry, archive_bytes));
    std::string key(entry.name, std::string_view(entry.name).size() - kSuffix.size());
    if (!names.insert(key).second) return invalid("two arrays are called '" + key + "'");
    total += std::min(entry.size, kMaxNpzBytes + 1);
    if (total > kMaxNpzBytes)
      return limit_error("arrays of more than " + std::to_string(kMaxNpzBytes) + " bytes", key);
    Entry file(zip_fopen_index(archive, static_cast<zip_uint64_t>(i), 0));
    if (!file) return invalid(std::string("damaged zip entry: ") + zip_strerror(archive), key);
    auto tensor = read_array(file.get(), entry.size);
    if (!tensor) {
      tensor.error().location = "array '" + key + "'";
      return tensor.error();
    }
    tensors.emplace_back(std::move(key), std::move(*tensor));
  }
  return tensors;
}

// Header and elements as two fragments of one source: no copy of the elements is made.
Status add_entry(zip_t* archive, const std::string& key, const std::string& header,
                 const HostTensor& tensor) {
  zip_buffer_fragment_t parts[2] = {
      {reinterpret_cast<zip_uint8_t*>(const_cast<char*>(header.data())), header.size()},
      {const_cast<zip_uint8_t*>(tensor.bytes.data()), tensor.bytes.size()}};
  zip_source_t* source =
      zip_source_buffer_fragment(archive, parts, tensor.bytes.empty() ? 1 : 2, 0);
  if (!source) return io_error(zip_strerror(archive));
  std::string entry = key + std::string(kSuffix);
  zip_int64_t index = zip_file_add(archive, entry.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return invalid("cannot add '" + entry + "': " + zip_strerror(archive));
  }
  auto at = static_cast<zip_uint64_t>(index);
  if (zip_set_file_compression(archive, at, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive, at, 0, kDosDate1980, 0) != 0)
    return io_error(zip_strerror(archive));
  return {};
}

}  // namespace

Result<NamedTensors> read_npz(const std::filesystem::path& path) {
  TW_ASSIGN(InputFile file, open_to_read(path.string()));
  const uint64_t archive_bytes = file.bytes;
  TW_ASSIGN(Archive archive, read_archive(std::move(file), path.string()));
  auto tensors = read_entries(archive.get(), archive_bytes);
  if (tensors.ok()) return tensors;
  Error& error = tensors.error();
  error.location = path.string() + (error.location.empty() ? "" : ": " + error.location);
  return std::move(error);
}

Status write_npz(const std::filesystem::path& path, const NamedTensors& tensors,
                 Durability durability) {
  if (tensors.empty()) return invalid("an archive needs at least one tensor", path.string());
  std::vector<std::string> headers;  // libzip reads headers and tensors only when it closes
  headers.reserve(tensors.size());
  TW_ASSIGN(FileWriter file, FileWriter::create(path.string()));
  int code = 0;
  zip_t* created = zip_open(file.path().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  TW_ASSIGN(Archive archive, opened(created, code, path.string()));
  for (const auto& [key, tensor] : tensors) {
    auto header = format_npy_header(tensor.dtype, tensor.shape);
    if (!header) return unsupported(header.error().message, "array '" + key + "'");
    headers.push_back(std::move(*header));
    TW_RETURN_IF_ERROR(add_entry(archive.get(), key, headers.back(), tensor));
  }
  if (zip_close(archive.get()) != 0)
    return io_error(std::string("cannot be written: ") + zip_strerror(archive.get()),
                    path.string());
  archive.release();
  return file.commit(durability);
}

}  // namespace tilewright
