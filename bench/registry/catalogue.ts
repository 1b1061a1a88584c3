/** A registry file with so many servers, each about the size that servers of public catalogues have (1.2 kB), numbered from `first`. */
export function syntheticCatalogue(count: number, first = 0): string {
  const servers = Array.from({ length: count }, (_, index) => syntheticServer(first + index));
  return JSON.stringify({
    version: '1.0.0',
    meta: { last_updated: '2026-01-01T00:00:00Z' },
    data: { servers },
  });
}

export function syntheticName(index: number): string {
  return `io.github.example-${index % 97}/server-${String(index).padStart(5, '0')}`;
}

export function syntheticServer(index: number) {
  const name = syntheticName(index);
  const identifier = `ghcr.io/example/server-${index}:1.${index % 10}.0`;
  return {
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name,
    title: `Server ${index}`,
    description: `Answers questions about subject ${index} with tools, prompts and resources`,
    version: `1.${index % 10}.0`,
    repository: { url: `https://github.com/example/server-${index}`, source: 'github' },
    packages: [
      {
        registryType: 'oci',
        identifier,
        transport: { type: 'stdio' },
        packageArguments: [{ type: 'positional', valueHint: 'subject', isRequired: true }],
        environmentVariables: [
          { name: 'API_KEY', description: 'Key of the service', isRequired: true, isSecret: true },
          { name: 'API_URL', description: 'Address of the service', default: 'https://api.example.com' },
        ],
      },
    ],
    _meta: {
      'io.modelcontextprotocol.registry/publisher-provided': {
        'io.github.stacklok': {
          [identifier]: {
            status: 'active',
            tier: 'Community',
            tags: ['example', 'synthetic', 'benchmark'],
            tools: ['find_subject', 'list_subjects', 'describe_subject', 'compare_subjects'],
            overview: `## Server ${index}\n\nFinds, lists, describes and compares subjects.`,
          },
        },
      },
    },
  };
}
