import { describe } from 'vitest';
import { FakeApiServer } from './api-server.fixture.ts';
import { followsCluster } from './contract.ts';

describe('a cluster in this process', () => followsCluster(() => FakeApiServer.start()));
